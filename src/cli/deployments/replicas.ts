// The replicas of a deployment as tables: what they do, and what they use of memory and GPUs.

import { toTable } from '#cli/output.ts';
import type { DeploymentView, ReplicaView } from '#deployments/ground/schema.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import { toBinarySize, toBinarySizeOf, toDuration } from '#lib/text/format.ts';

const toName = (id: string) => id.slice(0, 8);

export function renderReplicas(
  { replicas }: DeploymentView,
  stats: readonly ReplicaStats[],
): string {
  const findStats = ({ id }: ReplicaView) => stats.find((one) => one.id === id);
  const table = toTable('replicas', replicas, {
    REPLICA: ({ id }) => toName(id),
    REVISION: ({ revision }) => String(revision),
    STATE: ({ progress, state }) => progress ?? state,
    REQUESTS: ({ requests }) => String(requests),
    AGE: ({ started_at }) => toDuration(Math.max(0, Date.now() - Date.parse(started_at))),
    MEMORY: (replica) => toMemory(findStats(replica)),
  });
  const gpus = stats.flatMap(toGpus);
  if (gpus.length === 0) return table;
  const gpuTable = toTable('GPUs', gpus, {
    REPLICA: ({ replica }) => toName(replica),
    GPU: ({ index }) => String(index),
    MODEL: ({ model }) => model,
    BUSY: ({ busy_percent }) => `${busy_percent}%`,
    MEMORY: ({ memory_bytes, total_bytes }) => toBinarySizeOf(memory_bytes, total_bytes),
  });
  return `${table}\n\n${gpuTable}`;
}

function toMemory(stats: ReplicaStats | undefined): string {
  if (stats === undefined || 'unavailable' in stats.memory_bytes) return '–';
  const { memory_bytes: memory, memory_total_bytes: total } = stats;
  return total === null ? toBinarySize(memory.value) : toBinarySizeOf(memory.value, total);
}

const toGpus = ({ id, gpus }: ReplicaStats) =>
  'unavailable' in gpus ? [] : gpus.value.map((gpu, index) => ({ replica: id, index, ...gpu }));

/** Why figures of replicas that have started are not shown. */
export const explainMissing = (
  { replicas }: DeploymentView,
  stats: readonly ReplicaStats[],
): readonly string[] =>
  stats
    .filter(({ id }) => replicas.some((one) => one.id === id && one.state !== 'starting'))
    .flatMap(({ id, memory_bytes, gpus }) => {
      const figures = [
        { name: 'memory', figure: memory_bytes },
        { name: 'GPUs', figure: gpus },
      ].flatMap(({ name, figure }) =>
        'unavailable' in figure ? { name, reason: figure.unavailable } : [],
      );
      return [...Map.groupBy(figures, ({ reason }) => reason)].map(([reason, missing]) => {
        const names = missing.map(({ name }) => name).join(' and ');
        return `${toName(id)}: ${names} not known. ${reason}`;
      });
    });
