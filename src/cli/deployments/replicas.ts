// The replicas of a deployment as tables: what they do, and what they use of memory and GPUs.

import { toTable } from '#cli/output.ts';
import type { DeploymentView, ReplicaView } from '#deployments/schema.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import { toBinarySize, toBinarySizeOf, toDuration } from '#lib/text/format.ts';

const toName = (id: string) => id.slice(0, 8);

export function renderReplicas(
  { replicas }: DeploymentView,
  stats: readonly ReplicaStats[],
): string {
  const findStats = ({ id }: ReplicaView) => stats.find((one) => one.id === id);
  const tables = [
    toTable(
      'replicas',
      ['REPLICA', 'REVISION', 'STATE', 'REQUESTS', 'AGE', 'MEMORY'],
      replicas.map((replica) => [
        toName(replica.id),
        String(replica.revision),
        replica.progress ?? replica.state,
        String(replica.requests),
        toDuration(Math.max(0, Date.now() - Date.parse(replica.started_at))),
        toMemory(findStats(replica)),
      ]),
    ),
  ];
  const gpus = stats.flatMap(toGpuRows);
  if (gpus.length > 0)
    tables.push(toTable('GPUs', ['REPLICA', 'GPU', 'MODEL', 'BUSY', 'MEMORY'], gpus));
  return tables.join('\n\n');
}

function toMemory(stats: ReplicaStats | undefined): string {
  if (stats === undefined || 'unavailable' in stats.memory_bytes) return '–';
  const { memory_bytes: memory, memory_total_bytes: total } = stats;
  return total === null ? toBinarySize(memory.value) : toBinarySizeOf(memory.value, total);
}

const toGpuRows = ({ id, gpus }: ReplicaStats) =>
  'unavailable' in gpus
    ? []
    : gpus.value.map((gpu, index) => [
        toName(id),
        String(index),
        gpu.model,
        `${gpu.busy_percent}%`,
        toBinarySizeOf(gpu.memory_bytes, gpu.total_bytes),
      ]);

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
