// API keys: who has access by program, how much each may use and has used, and taking it away again.

import { Badge, Button, Code, Group, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import type { ApiKey } from '../../../src/accounts/schema.ts';
import { scopeName, useMe } from '../account.ts';
import { get, type List, remove } from '../api.ts';
import { Page } from '../parts/page.tsx';
import { type Column, Empty, Records } from '../parts/records.tsx';
import { useRemoval } from '../parts/removal.tsx';
import { When } from '../parts/when.tsx';
import { AccountLimits } from './account-limits.tsx';
import { AccountLimitsDialog, EditKeyDialog } from './edit-limits.tsx';
import { useAccountLimits } from './limits.ts';
import { NewApiKeyDialog } from './new-api-key.tsx';
import { LimitsView, SpendView } from './spend.tsx';

const queryKey = ['api-keys'];

export default function ApiKeys() {
  const { canUse, canManage } = useMe();
  const client = useQueryClient();
  const [location, navigate] = useLocation();
  const account = useAccountLimits();
  const keys = useQuery({
    queryKey,
    queryFn: () => get<List<ApiKey>>('/dashboard/api/api-keys'),
  });
  const refresh = () => client.invalidateQueries({ queryKey });
  const close = () => navigate('/api-keys');
  const removal = useRemoval<ApiKey>({
    action: 'Revoke',
    nameOf: ({ label }) => label,
    warning: ({ hint }) => (
      <>
        Programs that use <Code className="breakable">{hint}</Code> are refused at once. This can’t
        be undone.
      </>
    ),
    async onRemove({ id }) {
      await remove(`/dashboard/api/api-keys/${id}`);
      await refresh();
    },
    done: ({ label }) => `The key “${label}” is revoked.`,
  });

  const make = (
    <Button component={Link} href="/api-keys/new">
      Make a key
    </Button>
  );
  const columns: Column<ApiKey>[] = [
    { name: 'Label', cell: (key) => <Label apiKey={key} /> },
    { name: 'May use', cell: ({ scopes }) => <Scopes scopes={scopes} /> },
    { name: 'Limits', cell: ({ limits }) => <LimitsView limits={limits} /> },
    { name: 'Spent this month', cell: (key) => <SpendView of={key} name={key.label} /> },
    { name: 'Last used', cell: ({ last_used_at }) => <Maybe at={last_used_at} /> },
    { name: 'Expires', cell: ({ expires_at }) => <Expiry at={expires_at} /> },
  ];
  if (canUse) {
    columns.push({
      name: '',
      cell: (key) => (
        <Group gap={6} wrap="nowrap" justify="flex-end">
          <Button
            variant="default"
            size="xs"
            component={Link}
            href={`/api-keys/${key.id}`}
            aria-label={`Edit ${key.label}`}
          >
            Edit
          </Button>
          {removal.button(key)}
        </Group>
      ),
    });
  }
  const edited = keys.data?.data.find(({ id }) => location === `/api-keys/${id}`);

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
        likely={2}
        lines={3}
        empty={
          <Empty title="No keys yet" action={canUse && make}>
            Programs send a key with every request, as <Code>Authorization: Bearer …</Code>. Make
            one for each program, so that each can be revoked by itself.
          </Empty>
        }
      />
      <AccountLimits />
      {canUse && location === '/api-keys/new' && (
        <NewApiKeyDialog onMade={refresh} onClose={close} />
      )}
      {canUse && edited && <EditKeyDialog apiKey={edited} onClose={close} />}
      {canManage && account.data && location === '/api-keys/limits' && (
        <AccountLimitsDialog limits={account.data.limits} onClose={close} />
      )}
      {removal.dialog}
    </Page>
  );
}

const Label = ({ apiKey: { label, hint, created_at } }: { apiKey: ApiKey }) => (
  <div>
    <Text size="sm" fw={500} className="breakable">
      {label}
    </Text>
    <Code className="one-line">{hint}</Code>
    <Text size="xs" c="dimmed">
      made <When at={created_at} />
    </Text>
  </div>
);

const Scopes = ({ scopes }: Pick<ApiKey, 'scopes'>) => (
  <Group gap={6}>
    {scopes.map((scope) => (
      <Badge key={scope} variant="default" tt="none">
        {scopeName[scope]}
      </Badge>
    ))}
  </Group>
);

function Maybe({ at }: { at: string | null }) {
  if (at !== null) return <When at={at} />;
  return (
    <Text size="sm" c="dimmed">
      never
    </Text>
  );
}

function Expiry({ at }: { at: string | null }) {
  if (at === null || Date.parse(at) > Date.now()) return <Maybe at={at} />;
  return (
    <Text size="sm" c="var(--mantine-color-error)">
      expired
    </Text>
  );
}
