// The audit log: who changed what and when, newest first.

import { Button, Group, Select, Text } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ApiKey } from '../../../src/accounts/schema.ts';
import type { Member } from '../account.ts';
import { get, type List } from '../api.ts';
import { Page } from '../parts/page.tsx';
import { Empty, Records } from '../parts/records.tsx';
import { When } from '../parts/when.tsx';

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

/** In words. An action that is not here is shown as the server names it. */
const actions: Record<string, string> = {
  'account.created': 'Account made',
  'user.joined': 'Person joined',
  'user.login_succeeded': 'Signed in',
  'user.login_failed': 'Sign-in refused',
  'user.logged_out': 'Signed out',
  'user.password_changed': 'Password changed',
  'member.role_changed': 'Role changed',
  'member.removed': 'Person removed',
  'invitation.created': 'Invitation made',
  'invitation.revoked': 'Invitation revoked',
  'session.ended': 'Session ended',
  'account.limits_changed': 'Account limits changed',
  'api_key.created': 'API key made',
  'api_key.updated': 'API key changed',
  'api_key.revoked': 'API key revoked',
  'ssh_key.created': 'SSH key added',
  'ssh_key.deleted': 'SSH key deleted',
  'instance.created': 'Machine launched',
  'instance.updated': 'Machine renamed',
  'instance.restarted': 'Machine restarted',
  'instance.power_cycled': 'Machine turned off and on',
  'instance.terminated': 'Machine terminated',
  'filesystem.created': 'Filesystem made',
  'filesystem.deleted': 'Filesystem deleted',
  'firewall_rules.updated': 'Firewall rules changed',
  'firewall_ruleset.created': 'Firewall ruleset made',
  'firewall_ruleset.updated': 'Firewall ruleset changed',
  'firewall_ruleset.deleted': 'Firewall ruleset deleted',
  'pull.created': 'Weights asked for',
  'pull.cancelled': 'Download of weights cancelled',
  'weights.removed': 'Weights removed',
};

const pageSize = 50;

export default function AuditLog() {
  const [action, setAction] = useState<string | null>(null);
  const events = useInfiniteQuery({
    queryKey: ['audit-events', action],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) => {
      const query = new URLSearchParams({ limit: String(pageSize) });
      if (action !== null) query.set('action', action);
      if (pageParam !== null) query.set('before', pageParam);
      return get<List<AuditEvent> & { next: string | null }>(
        `/dashboard/api/audit-events?${query}`,
      );
    },
    getNextPageParam: ({ next }) => next,
  });
  const actorOf = useActors();
  const rows = events.data?.pages.flatMap(({ data }) => data);
  const known = new Set([...Object.keys(actions), ...(rows ?? []).map((event) => event.action)]);

  return (
    <Page title="Audit log" description="Every change to the account, with who made it.">
      <Select
        label="Show"
        placeholder="Everything"
        data={[...known].map((value) => ({ value, label: actions[value] ?? value }))}
        value={action}
        onChange={setAction}
        clearable
        clearButtonProps={{ 'aria-label': 'Show everything' }}
        searchable
        maw={280}
      />
      <Records
        label="Audit log"
        query={events}
        rows={rows}
        columns={[
          { name: 'When', cell: ({ at }) => <When at={at} /> },
          { name: 'What', cell: (event) => actions[event.action] ?? event.action },
          { name: 'Who', cell: (event) => actorOf(event) },
          { name: 'From', cell: ({ address }) => address },
          {
            name: 'Details',
            cell: ({ details }) => (
              <Text size="sm" c="dimmed" className="breakable">
                {toSentence(details)}
              </Text>
            ),
          },
        ]}
        empty={
          <Empty title="Nothing of this kind">
            The log has no such event yet. Choose another kind, or show everything.
          </Empty>
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
  return ({ user_id, api_key_id, resource_id, action, address }: AuditEvent): string => {
    const personId = user_id ?? (action.startsWith('user.') ? resource_id : null);
    const person = members.data?.data.find(({ id }) => id === personId);
    if (personId !== null) return person?.email ?? `person ${personId.slice(0, 8)}`;
    const key = keys.data?.data.find(({ id }) => id === api_key_id);
    if (api_key_id !== null) return `key “${key?.label ?? api_key_id.slice(0, 8)}”`;
    return address === 'server' ? 'the server' : 'nobody signed in';
  };
}

function toSentence(details: Record<string, unknown>): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${[value].flat().join(', ')}`)
    .join(' · ');
}
