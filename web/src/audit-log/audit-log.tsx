// The audit log: who changed what and when, newest first.

import { Button, Group, Text } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { ApiKey } from '#accounts/schema.ts';
import { get, type List } from '../api.ts';
import { useUrlState } from '../browser/url-state.ts';
import { DataTable, EmptyState } from '../components/data-table.tsx';
import { Page } from '../components/page.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import type { Member } from '../current-user.ts';
import { actions } from './action-names.ts';
import { AuditFilters, toAuditQuery } from './audit-filters.tsx';

interface AuditEvent {
  id: string;
  at: string;
  action: string;
  resource_id: string | null;
  user_id: string | null;
  api_key_id: string | null;
  address: string;
  details: Record<string, unknown>;
}

const pageSize = '50';

export default function AuditLog() {
  const view = useUrlState('/audit-log');
  const filter = toAuditQuery(view);
  const isFiltered = Object.keys(filter).length > 0;
  const events = useInfiniteQuery({
    queryKey: ['audit-events', filter],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) => {
      const query = new URLSearchParams({ ...filter, limit: pageSize });
      if (pageParam !== null) query.set('before', pageParam);
      return get<List<AuditEvent> & { next: string | null }>(
        `/dashboard/api/audit-events?${query}`,
      );
    },
    getNextPageParam: ({ next }) => next,
  });
  const { members, keys, actorOf } = useActors();
  const rows = events.data?.pages.flatMap(({ data }) => data);

  return (
    <Page title="Audit log" description="Every change to the account, with who made it.">
      <AuditFilters
        view={view}
        others={(rows ?? []).map(({ action }) => action)}
        members={members}
        keys={keys}
      />
      <DataTable
        label="Audit log"
        query={events}
        rows={rows}
        columns={[
          { name: 'When', cell: ({ at }) => <RelativeTime at={at} /> },
          { name: 'What', cell: (event) => actions[event.action] ?? event.action },
          { name: 'Who', cell: (event) => <div className="actor">{actorOf(event)}</div> },
          { name: 'From', cell: ({ address }) => address },
          {
            name: 'Details',
            cell: ({ details, resource_id }) => (
              <Text size="sm" c="dimmed" className="breakable">
                {toSentence(details) || resource_id}
              </Text>
            ),
          },
        ]}
        likely={8}
        empty={
          <EmptyState title="Nothing of this kind">
            {isFiltered
              ? 'The log has no event that fits all the filters above.'
              : 'Every change that people or programs make is written down here.'}
          </EmptyState>
        }
      />
      {events.hasNextPage && (
        <Group>
          <Button
            variant="default"
            onClick={() => events.fetchNextPage()}
            loading={events.isFetchingNextPage}
          >
            Show older
          </Button>
        </Group>
      )}
    </Page>
  );
}

/** Names for ids; people and keys that are gone keep the start of theirs. */
function useActors() {
  const members = useQuery({
    queryKey: ['members'],
    queryFn: () => get<List<Member>>('/dashboard/api/members'),
  });
  const keys = useQuery({
    queryKey: ['api-keys'],
    queryFn: () => get<List<ApiKey>>('/dashboard/api/api-keys'),
  });
  const people = members.data?.data ?? [];
  const programs = keys.data?.data ?? [];
  function actorOf({ user_id, api_key_id, resource_id, action, address }: AuditEvent): string {
    const personId = user_id ?? (action.startsWith('user.') ? resource_id : null);
    const person = people.find(({ id }) => id === personId);
    if (personId !== null) return person?.email ?? `person ${personId.slice(0, 8)}`;
    const key = programs.find(({ id }) => id === api_key_id);
    if (api_key_id !== null) return `key “${key?.label ?? api_key_id.slice(0, 8)}”`;
    return address === 'server' ? 'the server' : 'nobody signed in';
  }
  return { members: people, keys: programs, actorOf };
}

function toSentence(details: Record<string, unknown>): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${toText(value)}`)
    .join(' · ');
}

/** Of nested details, such as limits, those that are set. */
function toText(value: unknown): string {
  if (Array.isArray(value)) return value.map(toText).join(', ');
  if (typeof value !== 'object' || value === null) return String(value ?? 'none');
  const set = Object.entries(value).filter(([, one]) => one !== null);
  return set.map(([name, one]) => `${name} ${toText(one)}`).join(', ') || 'none';
}
