// SSH keys: who is let into machines that are launched from now on.

import { Button, Code, Group, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import type { SshKey } from '#cloud/schema.ts';
import { get, type List, remove } from '../api.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { type Column, DataTable, EmptyState } from '../components/data-table.tsx';
import { Page } from '../components/page.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { useMe } from '../current-user.ts';
import { AddSshKeyDialog } from './add-ssh-key-dialog.tsx';

const queryKey = ['ssh-keys'];

export default function SshKeys() {
  const { canUse } = useMe();
  const client = useQueryClient();
  const [location, navigate] = useLocation();
  const keys = useQuery({ queryKey, queryFn: () => get<List<SshKey>>('/api/v1/ssh-keys') });
  const refresh = () => client.invalidateQueries({ queryKey });

  const removal = useDelete<SshKey>({
    action: 'Delete',
    nameOf: ({ name }) => name,
    warning: () =>
      'Machines launched from now on can’t be given this key. Those that have it keep it.',
    async onRemove({ id }) {
      await remove(`/api/v1/ssh-keys/${id}`);
      await refresh();
    },
    done: ({ name }) => `The SSH key “${name}” is deleted.`,
  });

  const add = (
    <Button component={Link} href="/ssh-keys/new">
      Add a key
    </Button>
  );
  const columns: Column<SshKey>[] = [
    {
      name: 'Name',
      cell: ({ name }) => (
        <Text size="sm" fw={500} className="breakable">
          {name}
        </Text>
      ),
    },
    {
      name: 'Public key',
      cell: ({ name, public_key }) => (
        <Group gap={4} wrap="nowrap">
          <Code className="breakable">{shorten(public_key)}</Code>
          <CopyButton value={public_key} label={`Copy the public key of ${name}`} />
        </Group>
      ),
    },
  ];
  if (canUse) columns.push(removal.column);

  return (
    <Page
      title="SSH keys"
      description="A machine gets its keys when it is launched. Adding or deleting one later changes no machine that runs."
      actions={canUse && keys.data?.data.length !== 0 && add}
    >
      <DataTable
        label="SSH keys"
        query={keys}
        rows={keys.data?.data}
        columns={columns}
        empty={
          <EmptyState title="No SSH keys yet" action={canUse && add}>
            A machine lets in whoever holds the private half of its key. Paste the public half of
            yours, or have a new pair made here and download the private half.
          </EmptyState>
        }
      />
      {canUse && location === '/ssh-keys/new' && (
        <AddSshKeyDialog onAdded={refresh} onClose={() => navigate('/ssh-keys')} />
      )}
      {removal.dialog}
    </Page>
  );
}

/** e.g. `ssh-ed25519 AAAAC3Nza…k2J9fQ me@laptop`: enough to recognise it. */
function shorten(key: string): string {
  const [kind = '', body = '', ...comment] = key.split(' ');
  const short = body.length > 24 ? `${body.slice(0, 10)}…${body.slice(-8)}` : body;
  return [kind, short, ...comment].join(' ').slice(0, 80);
}
