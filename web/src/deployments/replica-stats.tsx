// What a replica uses of memory and GPUs, in the cells of its row.

import { Stack, Text } from '@mantine/core';
import type { ReplicaView } from '#deployments/ground/schema.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import { toBinarySize, toBinarySizeOf } from '#lib/text/format.ts';

interface StatsCellProps {
  replica: ReplicaView;
  /** Undefined while they load, and if it has no engine yet. */
  stats: ReplicaStats | undefined;
}

export function MemoryCell({ replica, stats }: StatsCellProps) {
  if (stats === undefined) return '–';
  const { memory_bytes: memory, memory_total_bytes: total } = stats;
  if ('unavailable' in memory) return <Unknown replica={replica} reason={memory.unavailable} />;
  return total === null ? toBinarySize(memory.value) : toBinarySizeOf(memory.value, total);
}

export function GpuCell({ replica, stats }: StatsCellProps) {
  if (stats === undefined) return '–';
  const { gpus } = stats;
  if ('unavailable' in gpus) return <Unknown replica={replica} reason={gpus.unavailable} />;
  if (gpus.value.length === 0) return '–';
  return (
    <Stack gap={4}>
      {gpus.value.map((gpu, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the order of a replica's GPUs never changes
        <div key={index}>
          {gpu.busy_percent}% busy, {toBinarySizeOf(gpu.memory_bytes, gpu.total_bytes)}
          <Text size="xs" c="dimmed">
            {gpu.model}
          </Text>
        </div>
      ))}
    </Stack>
  );
}

/** A machine that is still being launched has nothing to measure. That needs no explanation. */
const Unknown = ({ replica, reason }: { replica: ReplicaView; reason: string }) =>
  replica.state === 'starting' ? (
    '–'
  ) : (
    <div>
      Not known
      <Text size="xs" c="dimmed" maw={280}>
        {reason}
      </Text>
    </div>
  );

/** True if there is something to say about GPUs. */
export const hasGpuFigures = ({ memory_bytes, gpus }: ReplicaStats) =>
  'value' in gpus ? gpus.value.length > 0 : 'value' in memory_bytes;
