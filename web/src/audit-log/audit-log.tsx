// The audit log: every change, who made it and when, newest first.

import { Text } from '@mantine/core';
import type { AuditEvent } from '#accounts/schema.ts';
import { useUrlState } from '../browser/url-state.ts';
import { type Column, DataTable } from '../components/data-table.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { LoadMore } from '../components/filters.tsx';
import { Page } from '../components/page.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { usePagedList } from '../queries.ts';
import { actionNames } from './action-names.ts';
import { AuditFilters, toAuditQuery } from './audit-filters.tsx';
import { toDetailsText } from './details.ts';

export default function AuditLog() {
  const urlState = useUrlState('/audit-log');
  const filters = toAuditQuery(urlState);
  const isFiltered = Object.keys(filters).length > 0;
  const path = '/dashboard/api/audit-events';
  const events = usePagedList<AuditEvent>('audit-events', path, filters);
  return (
    <Page title="Audit log" description="Every change to the account, and who made it.">
      <AuditFilters
        urlState={urlState}
        loggedActions={(events.data ?? []).map(({ action }) => action)}
      />
      <DataTable
        label="Audit log"
        query={events}
        rows={events.data}
        columns={columns}
        skeletonRows={8}
        empty={
          <EmptyState
            title={isFiltered ? 'No matching events' : 'No events yet'}
            art={isFiltered ? 'filter' : 'list'}
          >
            {isFiltered
              ? 'No event in the log matches all of these filters.'
              : 'Changes that users and programs make are recorded here.'}
          </EmptyState>
        }
      />
      <LoadMore query={events} />
    </Page>
  );
}

const columns: Column<AuditEvent>[] = [
  { name: 'Time', cell: ({ at }) => <RelativeTime at={at} /> },
  { name: 'Action', cell: ({ action }) => actionNames[action] ?? action },
  {
    name: 'Actor',
    cell: (event) => <div className="actor">{toActor(event)}</div>,
  },
  { name: 'IP address', cell: ({ address }) => (address === 'server' ? '–' : address) },
  {
    name: 'Details',
    cell: (event) => (
      <Text size="sm" c="dimmed" className="breakable">
        {toDetailsText(event)}
      </Text>
    ),
  },
];

/** The name of the user or key behind an event. If it has been deleted, the start of its id. */
function toActor(event: AuditEvent): string {
  const { user_id, user_email, api_key_id, api_key_label, resource_id, action, address } = event;
  const userId = user_id ?? (action.startsWith('user.') ? resource_id : null);
  if (address === 'server') return 'Server';
  if (userId !== null) return user_email ?? `User ${userId.slice(0, 8)}`;
  if (api_key_id !== null) return `API key “${api_key_label ?? api_key_id.slice(0, 8)}”`;
  return 'Not signed in';
}
