// API keys: who has access by program, and taking it away again.

import { Badge, Button, Code, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { ApiKey } from '../../../src/accounts/schema.ts';
import { scopeName, useMe } from '../account.ts';
import { get, type List, remove } from '../api.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Page } from '../parts/page.tsx';
import { type Column, Empty, Records } from '../parts/records.tsx';
import { When } from '../parts/when.tsx';
import { NewApiKeyDialog } from './new-api-key.tsx';

const queryKey = ['api-keys'];

export default function ApiKeys() {
  const { canUse } = useMe();
  const client = useQueryClient();
  const [location, navigate] = useLocation();
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const keys = useQuery({
    queryKey,
    queryFn: () => get<List<ApiKey>>('/dashboard/api/api-keys'),
  });
  const refresh = () => client.invalidateQueries({ queryKey });

  async function revoke({ id, label }: ApiKey) {
    await remove(`/dashboard/api/api-keys/${id}`);
    await refresh();
    notifications.show({ message: `The key “${label}” is revoked.` });
  }

  const make = (
    <Button component={Link} href="/api-keys/new">
      Make a key
    </Button>
  );
  const columns: Column<ApiKey>[] = [
    {
      name: 'Label',
      cell: ({ label, hint }) => (
        <div>
          <Text size="sm" fw={500} className="breakable">
            {label}
          </Text>
          <Code className="breakable">{hint}</Code>
        </div>
      ),
    },
    { name: 'May use', cell: ({ scopes }) => <Scopes scopes={scopes} /> },
    { name: 'Made', cell: ({ created_at }) => <When at={created_at} /> },
    {
      name: 'Last used',
      cell: ({ last_used_at }) =>
        last_used_at === null ? (
          <Text size="sm" c="dimmed">
            never
          </Text>
        ) : (
          <When at={last_used_at} />
        ),
    },
    { name: 'Expires', cell: ({ expires_at }) => <Expiry at={expires_at} /> },
  ];
  if (canUse) {
    columns.push({
      name: '',
      cell: (key) => (
        <Button
          variant="default"
          size="xs"
          onClick={() => setRevoking(key)}
          aria-label={`Revoke ${key.label}`}
        >
          Revoke
        </Button>
      ),
    });
  }

  return (
    <Page
      title="API keys"
      description="A key lets a program use this server in the account’s name. It is shown once, when it is made."
      actions={canUse && keys.data?.data.length !== 0 && make}
    >
      <Records
        label="API keys"
        query={keys}
        rows={keys.data?.data}
        columns={columns}
        empty={
          <Empty title="No keys yet" action={canUse && make}>
            Programs send a key with every request, as <Code>Authorization: Bearer …</Code>. Make
            one for each program, so that each can be revoked by itself.
          </Empty>
        }
      />
      {canUse && location === '/api-keys/new' && (
        <NewApiKeyDialog onMade={refresh} onClose={() => navigate('/api-keys')} />
      )}
      {revoking && (
        <Confirm
          title={`Revoke “${revoking.label}”?`}
          action="Revoke"
          onConfirm={() => revoke(revoking)}
          onClose={() => setRevoking(null)}
        >
          Programs that use <Code className="breakable">{revoking.hint}</Code> are refused at once.
          This can’t be undone.
        </Confirm>
      )}
    </Page>
  );
}

const Scopes = ({ scopes }: Pick<ApiKey, 'scopes'>) => (
  <Group gap={6}>
    {scopes.map((scope) => (
      <Badge key={scope} variant="default" tt="none">
        {scopeName[scope]}
      </Badge>
    ))}
  </Group>
);

function Expiry({ at }: { at: string | null }) {
  if (at === null)
    return (
      <Text size="sm" c="dimmed">
        never
      </Text>
    );
  if (Date.parse(at) > Date.now()) return <When at={at} />;
  return (
    <Text size="sm" c="var(--mantine-color-error)">
      expired
    </Text>
  );
}
