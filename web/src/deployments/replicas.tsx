// The engines of a deployment: processes of the server, or machines.

import { Text } from '@mantine/core';
import type { DeploymentView, ReplicaView } from '#deployments/schema.ts';
import { toCount } from '#lib/format.ts';
import { type Column, DataTable, NameCell } from '../components/data-table.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { Section } from '../components/section.tsx';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';
import { toMachinePath } from '../machines/instances.ts';

const tones: Record<ReplicaView['state'], Tone> = {
  starting: 'busy',
  ready: 'good',
  draining: 'busy',
  asleep: 'off',
  stopped: 'off',
  stopping: 'busy',
};

export const Replicas = ({ deployment: { replicas, status } }: { deployment: DeploymentView }) => (
  <Section title="Replicas">
    <DataTable
      label="Replicas"
      rows={replicas}
      columns={columns}
      empty={
        <Text size="sm" c="dimmed">
          No replica runs.{status === 'idle' && ' The next request starts one.'}
        </Text>
      }
    />
  </Section>
);

const columns: Column<ReplicaView>[] = [
  {
    name: 'Replica',
    cell: ({ id, instance_id }) => (
      <NameCell
        name={id.slice(0, 8)}
        href={instance_id === null ? undefined : toMachinePath({ id: instance_id })}
      />
    ),
  },
  { name: 'State', cell: ({ state }) => <StatusBadge tone={tones[state]}>{state}</StatusBadge> },
  { name: 'Progress', cell: ({ progress }) => progress ?? '–' },
  { name: 'Started', cell: ({ started_at }) => <RelativeTime at={started_at} /> },
  { name: 'Revision', isNumber: true, cell: ({ revision }) => toCount(revision) },
  { name: 'Requests', isNumber: true, cell: ({ requests }) => toCount(requests) },
];
