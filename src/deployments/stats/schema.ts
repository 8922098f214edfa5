// Wire types of what replicas use.

import { type Static, type TSchema, Type } from '#lib/schema/schema-builder.ts';

/** A figure, or a sentence on why it can't be measured. */
const Measured = <Value extends TSchema>(value: Value) =>
  Type.Union([Type.Object({ value }), Type.Object({ unavailable: Type.String() })]);

export const ReplicaStats = Type.Object({
  /** Id of the replica. */
  id: Type.String(),
  /** Memory that its machine uses, without the file cache; or the resident memory of its processes. */
  memory_bytes: Measured(Type.Integer()),
  /** Memory of its machine, or of the server's computer; null if it is not known. */
  memory_total_bytes: Type.Union([Type.Integer(), Type.Null()]),
  /** The GPUs that it uses. Empty if there are none. */
  gpus: Measured(
    Type.Array(
      Type.Object({
        model: Type.String(),
        /** Share of the time in which the GPU computes. */
        busy_percent: Type.Number(),
        /** Memory that all programs together use. */
        memory_bytes: Type.Integer(),
        total_bytes: Type.Integer(),
      }),
    ),
  ),
});

export type ReplicaStats = Static<typeof ReplicaStats>;
