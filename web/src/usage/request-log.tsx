// Single requests, newest first: what was asked of which model by which key, how it went, and its cost.

import { Button, Code, Group, Select, Text } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { ApiKey } from '#accounts/schema.ts';
import type { UsageRequest, UsageRequestPage } from '#accounts/usage/schema.ts';
import { get, type List } from '../api.ts';
import type { UrlState } from '../browser/url-state.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { type Column, DataTable, EmptyState } from '../components/data-table.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';
import { toCount, toDuration, toMoney } from '../format/numbers.ts';
import { useModels } from '../models/use-models.ts';
import { stepMs } from './time-range.ts';
import { toTimes } from './usage-query.ts';

const statuses: Record<UsageRequest['status'], { name: string; tone: Tone }> = {
  done: { name: 'done', tone: 'good' },
  running: { name: 'running', tone: 'waiting' },
  aborted: { name: 'stopped by the client', tone: 'quiet' },
  failed: { name: 'failed', tone: 'bad' },
  refused: { name: 'refused', tone: 'bad' },
  interrupted: { name: 'cut off by a restart', tone: 'bad' },
};
const pageSize = 50;

export function Requests({ view }: { view: UrlState }) {
  const filters = toFilters(view);
  const requests = useInfiniteQuery({
    queryKey: ['usage-requests', filters],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) => {
      const query = new URLSearchParams({ ...filters, limit: String(pageSize) });
      if (pageParam !== null) query.set('before', pageParam);
      return get<UsageRequestPage>(`/dashboard/api/usage/requests?${query}`);
    },
    getNextPageParam: ({ next }) => next,
  });
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <div className="stack">
      <Group align="flex-end" justify="space-between">
        <Filters view={view} />
        <Button
          variant="default"
          component="a"
          href={`/dashboard/api/usage/requests.csv?${new URLSearchParams({ ...filters, ...toLastDays(30) })}`}
          download
        >
          Download 30 days as CSV
        </Button>
      </Group>
      <DataTable
        label="Requests"
        query={requests}
        rows={requests.data?.pages.flatMap(({ data }) => data)}
        columns={columns}
        likely={8}
        empty={
          isFiltered ? (
            <EmptyState title="No such requests">None fits all the filters above.</EmptyState>
          ) : (
            <EmptyState title="No requests yet">
              Each request to a model is listed here with its tokens, times and cost. What was said
              is not kept.
            </EmptyState>
          )
        }
      />
      {requests.hasNextPage && (
        <Group>
          <Button
            variant="default"
            onClick={() => requests.fetchNextPage()}
            loading={requests.isFetchingNextPage}
          >
            Show older
          </Button>
        </Group>
      )}
    </div>
  );
}

const toFilters = (view: UrlState) =>
  Object.fromEntries(
    ['model', 'key', 'status'].flatMap((name) => {
      const value = view.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );

function toLastDays(days: number) {
  // To the hour: the address would otherwise change at every rendering.
  const to = Math.ceil(Date.now() / stepMs.hour) * stepMs.hour;
  return toTimes({ from: to - days * stepMs.day, to });
}

function Filters({ view }: { view: UrlState }) {
  const models = useModels();
  const keys = useQuery({
    queryKey: ['api-keys'],
    queryFn: () => get<List<ApiKey>>('/dashboard/api/api-keys'),
  });
  const filters = [
    { name: 'model', label: 'Model', data: models.data?.data.map(({ id }) => id) ?? [] },
    {
      name: 'key',
      label: 'API key',
      data: keys.data?.data.map(({ id, label }) => ({ value: id, label })) ?? [],
    },
    {
      name: 'status',
      label: 'How it went',
      data: Object.entries(statuses).map(([value, { name }]) => ({ value, label: name })),
    },
  ];
  return (
    <Group gap="sm" align="flex-end">
      {filters.map(({ name, label, data }) => (
        <Select
          key={name}
          label={label}
          placeholder="All"
          data={data}
          value={view.get(name)}
          onChange={(value) => view.set({ [name]: value })}
          clearable
          clearButtonProps={{ 'aria-label': `All of ${label}` }}
          searchable
          w={200}
        />
      ))}
    </Group>
  );
}

const columns: Column<UsageRequest>[] = [
  {
    name: 'When',
    cell: ({ at, id }) => (
      <div>
        <RelativeTime at={at} />
        <Group gap={2} wrap="nowrap">
          <Code>{id.slice(0, 12)}…</Code>
          <CopyButton value={id} label="Copy the request id" />
        </Group>
      </div>
    ),
  },
  {
    name: 'Model',
    cell: ({ model, served_model, backend }) => (
      <div>
        <Text size="sm" className="breakable">
          {model || 'no model'}
        </Text>
        <Text size="xs" c="dimmed" className="breakable">
          {[served_model === model ? null : served_model, backend].filter(Boolean).join(' · ')}
        </Text>
      </div>
    ),
  },
  {
    name: 'Key',
    cell: ({ key_label, key_id }) => (
      <Text size="sm" className="breakable">
        {key_label ?? key_id?.slice(0, 8) ?? 'in this dashboard'}
      </Text>
    ),
  },
  {
    name: 'How it went',
    cell: ({ status, code }) => (
      <div>
        <StatusBadge tone={statuses[status].tone}>{statuses[status].name}</StatusBadge>
        {code && (
          <Text size="xs" c="dimmed" className="breakable">
            {code}
          </Text>
        )}
      </div>
    ),
  },
  {
    name: 'Tokens',
    cell: ({ prompt_tokens, completion_tokens, cached_tokens }) => (
      <div className="one-line">
        {toCount(prompt_tokens)} in, {toCount(completion_tokens)} out
        {cached_tokens > 0 && (
          <Text size="xs" c="dimmed">
            {toCount(cached_tokens)} cached
          </Text>
        )}
      </div>
    ),
  },
  {
    name: 'Time',
    cell: ({ status, duration_ms, first_token_ms }) => (
      <div className="one-line">
        {status === 'running' ? '–' : toDuration(duration_ms)}
        {first_token_ms !== null && (
          <Text size="xs" c="dimmed">
            {toDuration(first_token_ms)} to the first token
          </Text>
        )}
      </div>
    ),
  },
  {
    name: 'Cost',
    isNumber: true,
    cell: ({ cost, reserved }) => (
      <div className="one-line">
        {toMoney(cost)}
        {reserved && (
          <Text size="xs" c="dimmed">
            as reserved
          </Text>
        )}
      </div>
    ),
  },
];
