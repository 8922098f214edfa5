// Wire types of what replicas use.

import { GpuFigures, MeasuredFigure } from '#cloud/schema.ts';
import { type Static, Type } from '#lib/schema/schema-builder.ts';

export const ReplicaStats = Type.Object({
  /** Id of the replica. */
  id: Type.String(),
  /** Memory that its machine uses, without the file cache; or the resident memory of its processes. */
  memory_bytes: MeasuredFigure(Type.Integer()),
  /** Memory of its machine, or of the server's computer; null if it is not known. */
  memory_total_bytes: Type.Union([Type.Integer(), Type.Null()]),
  /** The GPUs that it uses. Empty if there are none. */
  gpus: MeasuredFigure(GpuFigures),
});

export type ReplicaStats = Static<typeof ReplicaStats>;
