// What a replica uses, as people see it.

import { toFigure, toGpuFigures } from '#cloud/instances/instance-details.ts';
import type { Engine } from '#deployments/engines/engine.ts';
import { withTimeout } from '#lib/async/with-timeout.ts';
import type { ReplicaStats } from './schema.ts';

/** Longer than a measurement of GPUs may take, and shorter than the timeout of a call between servers. */
const timeoutMs = 4_000;

/** Never rejects: what can't be measured has a reason. */
export async function measureReplica(id: string, engine: Engine): Promise<ReplicaStats> {
  try {
    const { memoryBytes, totalBytes, gpus } = await withTimeout(engine.stats(), timeoutMs);
    return {
      id,
      memory_bytes: memoryBytes,
      memory_total_bytes: totalBytes,
      gpus: toFigure(gpus, toGpuFigures),
    };
  } catch (error) {
    return toUnknown(id, (error as Error).message);
  }
}

export const toUnknown = (id: string, reason: string): ReplicaStats => ({
  id,
  memory_bytes: { unavailable: reason },
  memory_total_bytes: null,
  gpus: { unavailable: reason },
});
