// The weights on the server's disk, and removing them.

import { Button, Stack, Text, Title } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { StoredWeights } from '#inference/weights/schema.ts';
import { remove } from '../api.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { type Column, DataTable } from '../components/data-table.tsx';
import { toSize } from '../format/bytes.ts';
import { toShortName, weightsKey } from './weights.ts';

type Row = StoredWeights & { id: string };

interface StoredWeightsProps {
  weights: StoredWeights[];
  canUse: boolean;
}

export function StoredWeightsList({ weights, canUse }: StoredWeightsProps) {
  const client = useQueryClient();
  const [removing, setRemoving] = useState<Row | null>(null);

  async function removeWeights({ name }: Row) {
    await remove(`/dashboard/api/weights/${name.split('/').map(encodeURIComponent).join('/')}`);
    await client.invalidateQueries({ queryKey: weightsKey });
    notifications.show({ message: `${toShortName(name)} is removed.` });
  }

  const columns: Column<Row>[] = [
    {
      name: 'Weights',
      cell: ({ name, repo }) => (
        <div>
          <Text size="sm" fw={500} className="breakable">
            {toShortName(name)}
          </Text>
          <Text size="xs" c="dimmed" className="breakable">
            {repo}
          </Text>
        </div>
      ),
    },
    {
      name: 'Size',
      cell: ({ bytes, bytes_on_disk, state }) =>
        state === 'whole' ? toSize(bytes) : `${toSize(bytes_on_disk)} of ${toSize(bytes)}`,
    },
    { name: 'Serves', cell: ({ models }) => models.join(', ') || 'no model' },
  ];
  if (canUse) {
    columns.push({
      name: '',
      cell: (row) => (
        <Button
          variant="default"
          size="xs"
          onClick={() => setRemoving(row)}
          aria-label={`Remove ${toShortName(row.name)}`}
        >
          Remove
        </Button>
      ),
    });
  }
  const loaded = { isPending: false, error: null, refetch: () => Promise.reject() };
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        Weights on disk
      </Title>
      <DataTable
        label="Weights on disk"
        query={loaded}
        rows={weights.map((one) => ({ ...one, id: one.name }))}
        columns={columns}
        empty={
          <Text size="sm" c="dimmed">
            None yet. Until weights are pulled for a model, the small built-in model stands in.
          </Text>
        }
      />
      {removing && (
        <ConfirmDialog
          title={`Remove ${toShortName(removing.name)}?`}
          action="Remove"
          onConfirm={() => removeWeights(removing)}
          onClose={() => setRemoving(null)}
        >
          {removing.models.length === 0
            ? 'Nothing is served from these weights.'
            : `The built-in stand-in answers for ${removing.models.join(', ')} from then on.`}
        </ConfirmDialog>
      )}
    </Stack>
  );
}
