// API keys: which programs have access, what each key may use and has used, and revoking access.

import { Anchor, Button, Code, Group, Text, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { ApiKey } from '#accounts/schema.ts';
import { type Column, DataTable } from '../components/data-table.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { LoadMore } from '../components/filters.tsx';
import { Page } from '../components/page.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { scopeName, useMe } from '../current-user.ts';
import { apiKeysKey, useApiKeys } from '../queries.ts';
import { AccountLimits } from './account-limits.tsx';
import { CreateApiKeyDialog } from './create-api-key-dialog.tsx';
import { Expiry, OptionalTime, Scopes, toCreator } from './key-cells.tsx';
import { useAccountLimits } from './limits.ts';
import { AccountLimitsDialog, EditKeyDialog } from './limits-dialogs.tsx';
import { LimitsView, SpendView } from './limits-view.tsx';
import { useRevocation } from './use-revocation.tsx';

export default function ApiKeys() {
  const { id: myId, canUse, canManage } = useMe();
  const [search, setSearch] = useState('');
  const client = useQueryClient();
  const [location, navigate] = useLocation();
  const account = useAccountLimits();
  const keys = useApiKeys(search);
  const revocation = useRevocation();
  const close = () => navigate('/api-keys');
  const create = canUse && (
    <Button component={Link} href="/api-keys/new">
      Create API key
    </Button>
  );
  const isMine = ({ created_by: by }: ApiKey) => canManage || by?.id === myId;
  // A link may lead to a key that is not on the first page.
  const [linkedId = ''] = /(?<=\/edit\/)[0-9a-f]{32}$/.exec(location) ?? [];
  const edited = useApiKeys(linkedId).data?.find((key) => key.id === linkedId && isMine(key));
  return (
    <Page
      title="API keys"
      description="An API key lets a program use this server on behalf of the account. A key is shown only once, when it is created."
      actions={(search !== '' || keys.data?.length !== 0) && create}
    >
      <AccountLimits />
      {(search !== '' || keys.hasNextPage) && <KeySearch onSearch={setSearch} />}
      <DataTable
        label="API keys"
        query={keys}
        rows={keys.data}
        columns={canUse ? [...columns, toActions(isMine, revocation.button)] : columns}
        skeletonRows={2}
        skeletonLines={3}
        empty={
          search === '' ? (
            <EmptyState
              title="No API keys yet"
              art="key"
              action={create}
              command="millrace keys create my-program"
            >
              Programs send a key with every request, as <Code>Authorization: Bearer …</Code>.
              Create one key per program, so that you can revoke each separately.
            </EmptyState>
          ) : (
            <EmptyState title="No matching API keys" art="filter">
              No label contains “{search}”.
            </EmptyState>
          )
        }
      />
      <LoadMore query={keys} />
      {canUse && location === '/api-keys/new' && (
        <CreateApiKeyDialog
          onCreated={() => client.invalidateQueries({ queryKey: apiKeysKey })}
          onClose={close}
        />
      )}
      {canUse && edited && <EditKeyDialog apiKey={edited} onClose={close} />}
      {canManage && account.data && location === '/api-keys/limits' && (
        <AccountLimitsDialog limits={account.data.limits} onClose={close} />
      )}
      {revocation.dialog}
    </Page>
  );
}

const columns: Column<ApiKey>[] = [
  {
    name: 'Label',
    value: ({ label, hint }) => `${label} ${hint}`,
    cell: (key) => <Label apiKey={key} />,
  },
  {
    name: 'Access',
    filter: true,
    value: ({ scopes }) => scopes.map((scope) => scopeName[scope]).join(', '),
    cell: ({ scopes }) => <Scopes scopes={scopes} />,
  },
  { name: 'Limits', cell: ({ limits }) => <LimitsView limits={limits} /> },
  { name: 'Cost this month', cell: (key) => <SpendView of={key} name={key.label} /> },
  {
    name: 'Last used',
    value: ({ last_used_at }) => last_used_at,
    cell: ({ last_used_at }) => <OptionalTime at={last_used_at} />,
  },
  {
    name: 'Expires',
    value: ({ expires_at }) => expires_at,
    cell: ({ expires_at }) => <Expiry at={expires_at} />,
  },
];

/** Searches when the user has finished typing, so that each letter is not a request. */
function KeySearch({ onSearch }: { onSearch: (text: string) => void }) {
  const search = useDebouncedCallback(onSearch, 300);
  return (
    <TextInput
      label="Search"
      placeholder="Label"
      maxLength={64}
      maw={320}
      onChange={({ currentTarget }) => search(currentTarget.value.trim())}
    />
  );
}

/** Members may change only their own keys. */
const toActions = (
  isMine: (key: ApiKey) => boolean,
  revokeButton: (key: ApiKey) => ReactNode,
): Column<ApiKey> => ({
  name: '',
  cell: (key) =>
    isMine(key) && (
      <Group gap={6} wrap="nowrap" justify="flex-end">
        <Button
          variant="default"
          size="xs"
          component={Link}
          href={`/api-keys/edit/${key.id}`}
          aria-label={`Edit ${key.label}`}
        >
          Edit
        </Button>
        {revokeButton(key)}
      </Group>
    ),
});

const Label = ({ apiKey }: { apiKey: ApiKey }) => (
  <div>
    <Anchor
      component={Link}
      href={`/api-keys/${apiKey.id}`}
      size="sm"
      fw={500}
      className="breakable"
    >
      {apiKey.label}
    </Anchor>
    <div>
      <Code className="one-line">{apiKey.hint}</Code>
    </div>
    <Text size="xs" c="dimmed" className="breakable">
      created <RelativeTime at={apiKey.created_at} /> by {toCreator(apiKey)}
    </Text>
  </div>
);
