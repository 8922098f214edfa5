// Single requests, newest first, with their status, duration and cost.

import { Button, Group } from '@mantine/core';
import type { UsageRequest } from '#accounts/usage/schema.ts';
import { useKeyOptions } from '../api-keys/key-options.ts';
import type { UrlState } from '../browser/url-state.ts';
import { DataTable } from '../components/data-table.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { Filters, LoadMore } from '../components/filters.tsx';
import { useModels } from '../models/use-models.ts';
import { usePagedList } from '../queries.ts';
import { requestColumns, statuses } from './request-columns.tsx';
import { StorageNotice } from './storage-notice.tsx';
import { stepMs } from './time-range.ts';
import { toTimes } from './usage-query.ts';

const path = '/dashboard/api/usage/requests';

export function RequestLog({ urlState }: { urlState: UrlState }) {
  const filters = toFilters(urlState);
  const requests = usePagedList<UsageRequest>('usage-requests', path, filters);
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <div className="stack">
      <StorageNotice />
      <Group align="flex-end" justify="space-between">
        <RequestFilters urlState={urlState} />
        <Button
          variant="default"
          component="a"
          href={`${path}.csv?${new URLSearchParams({ ...filters, ...toLastDays(30) })}`}
          download
        >
          Download CSV (30 days)
        </Button>
      </Group>
      <DataTable
        label="Requests"
        query={requests}
        rows={requests.data}
        columns={requestColumns}
        skeletonRows={8}
        empty={
          isFiltered ? (
            <EmptyState title="No matching requests" art="filter">
              No request matches all of these filters.
            </EmptyState>
          ) : (
            <EmptyState
              title="No requests yet"
              art="pulse"
              command="millrace run 'What is a millrace?'"
            >
              Each request to a model is listed here with its tokens, duration and cost. Prompts and
              responses are not stored.
            </EmptyState>
          )
        }
      />
      <LoadMore query={requests} />
    </div>
  );
}

const toFilters = (urlState: UrlState) =>
  Object.fromEntries(
    ['model', 'key', 'status'].flatMap((name) => {
      const value = urlState.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );

/** Rounded up to the hour: otherwise the link would change at every render. */
function toLastDays(days: number) {
  const to = Math.ceil(Date.now() / stepMs.hour) * stepMs.hour;
  return toTimes({ from: to - days * stepMs.day, to });
}

function RequestFilters({ urlState }: { urlState: UrlState }) {
  const models = useModels();
  const keys = useKeyOptions(urlState.get('key'));
  const filters = [
    { name: 'model', label: 'Model', data: models.data?.data.map(({ id }) => id) ?? [] },
    {
      name: 'key',
      label: 'API key',
      ...keys,
    },
    {
      name: 'status',
      label: 'Status',
      data: Object.entries(statuses).map(([value, { name }]) => ({ value, label: name })),
    },
  ];
  return <Filters urlState={urlState} filters={filters} />;
}
