// API keys: who has access by program, how much each may use and has used, and taking it away again.

import { Badge, Button, Code, Group, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import type { ApiKey } from '#accounts/schema.ts';
import { get, type List, remove } from '../api.ts';
import { type Column, DataTable, EmptyState } from '../components/data-table.tsx';
import { Page } from '../components/page.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { scopeName, useMe } from '../current-user.ts';
import { AccountLimits } from './account-limits.tsx';
import { CreateApiKeyDialog } from './create-api-key-dialog.tsx';
import { useAccountLimits } from './limits.ts';
import { AccountLimitsDialog, EditKeyDialog } from './limits-dialogs.tsx';
import { LimitsView, SpendView } from './limits-view.tsx';

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
  const removal = useDelete<ApiKey>({
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
      <DataTable
        label="API keys"
        query={keys}
        rows={keys.data?.data}
        columns={columns}
        likely={2}
        lines={3}
        empty={
          <EmptyState title="No keys yet" action={canUse && make}>
            Programs send a key with every request, as <Code>Authorization: Bearer …</Code>. Make
            one for each program, so that each can be revoked by itself.
          </EmptyState>
        }
      />
      <AccountLimits />
      {canUse && location === '/api-keys/new' && (
        <CreateApiKeyDialog onMade={refresh} onClose={close} />
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
      made <RelativeTime at={created_at} />
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
  if (at !== null) return <RelativeTime at={at} />;
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
