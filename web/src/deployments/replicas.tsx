// The engines of a deployment: processes of the server, or machines.

import { Text } from '@mantine/core';
import type { DeploymentView, ReplicaView } from '#deployments/ground/schema.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import { toCount } from '#lib/text/format.ts';
import { type Column, DataTable, NameCell } from '../components/data-table.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { Section } from '../components/section.tsx';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';
import { toMachinePath } from '../machines/instances.ts';
import { useReplicaStats } from './deployments.ts';
import { GpuCell, hasGpuFigures, MemoryCell } from './replica-stats.tsx';

const tones: Record<ReplicaView['state'], Tone> = {
  starting: 'busy',
  ready: 'good',
  draining: 'busy',
  asleep: 'off',
  stopped: 'off',
  stopping: 'busy',
};

export function Replicas({ deployment }: { deployment: DeploymentView }) {
  const { replicas, status, revision } = deployment;
  const measured = useReplicaStats(deployment).data?.data ?? [];
  const rows = replicas.map((replica) => ({
    ...replica,
    stats: measured.find(({ id }) => id === replica.id),
  }));
  const isMixed = replicas.some((replica) => replica.revision !== revision);
  const hasGpus = rows.some(({ stats }) => stats !== undefined && hasGpuFigures(stats));
  return (
    <Section title="Replicas">
      <DataTable
        label="Replicas"
        rows={rows}
        columns={toColumns({ hasGpus, isMixed })}
        empty={
          <Text size="sm" c="dimmed">
            No replica runs.{status === 'idle' && ' The next request starts one.'}
          </Text>
        }
      />
    </Section>
  );
}

type ReplicaRow = ReplicaView & { stats: ReplicaStats | undefined };

/** While all replicas have the current revision, it is only shown above. */
const toColumns = (has: { hasGpus: boolean; isMixed: boolean }): Column<ReplicaRow>[] => [
  {
    name: 'Replica',
    cell: ({ id, instance_id }) => (
      <NameCell
        name={id.slice(0, 8)}
        href={instance_id === null ? undefined : toMachinePath({ id: instance_id })}
      />
    ),
  },
  { name: 'State', cell: (replica) => <ReplicaState {...replica} /> },
  { name: 'Started', cell: ({ started_at }) => <RelativeTime at={started_at} /> },
  { name: 'Requests', isNumber: true, cell: ({ requests }) => toCount(requests) },
  { name: 'Memory', cell: (replica) => <MemoryCell replica={replica} stats={replica.stats} /> },
  ...(has.hasGpus
    ? [
        {
          name: 'GPU',
          cell: (replica: ReplicaRow) => <GpuCell replica={replica} stats={replica.stats} />,
        },
      ]
    : []),
  ...(has.isMixed
    ? [
        {
          name: 'Revision',
          isNumber: true,
          cell: ({ revision }: ReplicaRow) => toCount(revision),
        },
      ]
    : []),
];

const ReplicaState = ({ state, progress }: ReplicaView) => (
  <div>
    <StatusBadge tone={tones[state]}>{state}</StatusBadge>
    {progress !== null && progress !== state && (
      <Text size="xs" c="dimmed">
        {progress}
      </Text>
    )}
  </div>
);
