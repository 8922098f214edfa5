// Whether the chosen model fits the server and each instance type.

import { Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { FitsView } from '#deployments/schema.ts';
import { toCount } from '#lib/format.ts';
import { get } from '../api.ts';
import { StatusBadge } from '../components/status-badge.tsx';
import { deploymentsPath, type Engine } from './deployments.ts';

interface MemoryFitsProps {
  model: string;
  engine: Engine;
  /** Empty if the weights are those of the model. */
  source: string;
}

export function MemoryFits({ model, engine, source }: MemoryFitsProps) {
  const query = new URLSearchParams({ model, engine, ...(source === '' ? {} : { source }) });
  const { data } = useQuery({
    queryKey: ['fits', `${query}`],
    queryFn: () => get<{ data: FitsView }>(`${deploymentsPath}/-/fits?${query}`),
  });
  const need = data?.data.need;
  if (!data || !need) return null;
  return (
    <Stack gap={6} role="group" aria-label="Memory">
      <Text size="sm">
        Needs {need.total_gib} GiB{' '}
        <span className="muted">
          weights {need.weights_gib}, KV cache {need.cache_gib} ({need.requests} ×{' '}
          {toCount(need.tokens)} tokens), overhead {need.overhead_gib}
        </span>
      </Text>
      <Group gap={6}>
        {data.data.places.map(({ name, fits, summary }) => (
          <span key={name} title={summary}>
            <StatusBadge tone={fits ? 'good' : 'off'}>
              {`${name === 'host' ? 'This server' : name}: ${fits ? 'fits' : 'too small'}`}
            </StatusBadge>
          </span>
        ))}
      </Group>
    </Stack>
  );
}
