// The weights on the server's disk, and removing them.

import { Text } from '@mantine/core';
import type { StoredWeights } from '#inference/weights/schema.ts';
import { toSize } from '#lib/text/format.ts';
import { type Column, DataTable, NameCell } from '../components/data-table.tsx';
import { Section } from '../components/section.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { toShortName, weightsKey } from './weights.ts';

type Row = StoredWeights & { id: string };

interface StoredWeightsListProps {
  weights: StoredWeights[];
  canUse: boolean;
}

export function StoredWeightsList({ weights, canUse }: StoredWeightsListProps) {
  const removal = useDelete<Row>({
    action: 'Remove',
    nameOf: ({ name }) => toShortName(name),
    warning: ({ models }) =>
      models.length === 0
        ? 'No model uses these weights.'
        : `Requests for ${models.join(', ')} get an error (503) unless another backend serves them.`,
    // The column of models names them.
    blockedReason: ({ deployments }) => (deployments.length > 0 ? 'in use' : null),
    pathOf: ({ name }) =>
      `/dashboard/api/weights/${name.split('/').map(encodeURIComponent).join('/')}`,
    queryKeys: [weightsKey],
    doneMessage: ({ name }) => `${toShortName(name)} removed.`,
  });
  return (
    <Section title="Weights on disk">
      <DataTable
        label="Weights on disk"
        name="weights-"
        rows={weights.map((one) => ({ ...one, id: one.name }))}
        columns={canUse ? [...columns, removal.column] : columns}
        empty={
          <Text size="sm" c="dimmed">
            None yet. The stand-in answers for a model until it has weights or another backend.
          </Text>
        }
      />
      {removal.dialog}
    </Section>
  );
}

const toUsers = ({ models, deployments }: Row) =>
  [...models, ...deployments.map((name) => `deployment ${name}`)].join(', ');

const columns: Column<Row>[] = [
  {
    name: 'Weights',
    value: ({ name, repo }) => `${toShortName(name)} ${repo}`,
    cell: ({ name, repo }) => (
      <NameCell name={toShortName(name)}>
        <Text size="xs" c="dimmed" className="breakable">
          {repo}
        </Text>
      </NameCell>
    ),
  },
  {
    name: 'Size',
    isNumber: true,
    value: ({ bytes }) => bytes,
    cell: ({ bytes, bytes_on_disk, state }) =>
      state === 'whole' ? toSize(bytes) : `${toSize(bytes_on_disk)} of ${toSize(bytes)}`,
  },
  {
    name: 'Serves',
    value: toUsers,
    cell: (row) => toUsers(row) || 'No model',
  },
];
