// The last requests of a model or a key that failed or were refused.

import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { UsageRequest } from '#accounts/usage/schema.ts';
import { get, type List } from '../api.ts';
import { DataTable } from '../components/data-table.tsx';
import { Section } from '../components/section.tsx';
import { requestColumns } from './request-columns.tsx';
import type { Subject } from './usage-query.ts';

const shown = 5;
const statuses = ['failed', 'refused', 'interrupted'] as const;

export function LastErrors({ subject, from }: { subject: Subject; from: number }) {
  const errors = useQuery({
    queryKey: ['usage-errors', subject, from],
    refetchInterval: 15_000,
    queryFn: async () => {
      const pages = await Promise.all(
        statuses.map((status) => {
          const since = new Date(from).toISOString();
          const query = new URLSearchParams({ ...subject, status, limit: `${shown}`, from: since });
          return get<List<UsageRequest>>(`/dashboard/api/usage/requests?${query}`);
        }),
      );
      return pages
        .flatMap(({ data }) => data)
        .toSorted((one, other) => other.at.localeCompare(one.at))
        .slice(0, shown);
    },
  });
  const all = new URLSearchParams({ ...subject, status: 'failed' });
  return (
    <Section
      title="Last errors"
      actions={
        <Anchor component={Link} href={`/usage/requests/${all}`} size="sm" underline="always">
          All failed requests
        </Anchor>
      }
    >
      <DataTable
        label="Last errors"
        query={errors}
        rows={errors.data}
        columns={requestColumns}
        empty={null}
      />
    </Section>
  );
}
