// SSH keys: the public keys that new machines can be launched with.

import { Button, Code, Group } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import type { SshKey } from '#cloud/schema.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { type Column, DataTable, NameCell } from '../components/data-table.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { Page } from '../components/page.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { useMe } from '../current-user.ts';
import { sshKeysKey, useSshKeys } from '../queries.ts';
import { AddSshKeyDialog } from './add-ssh-key-dialog.tsx';

export default function SshKeys() {
  const { canUse } = useMe();
  const client = useQueryClient();
  const [location, navigate] = useLocation();
  const keys = useSshKeys();
  const deletion = useDelete<SshKey>({
    nameOf: ({ name }) => name,
    warning: () => 'New machines can’t use this key. Machines that already have it keep it.',
    pathOf: ({ id }) => `/api/v1/ssh-keys/${id}?machines=keep`,
    queryKeys: [sshKeysKey],
    doneMessage: ({ name }) => `SSH key “${name}” deleted.`,
  });
  const add = canUse && (
    <Button component={Link} href="/ssh-keys/new">
      Add SSH key
    </Button>
  );
  return (
    <Page
      title="SSH keys"
      description="A machine gets its SSH key at launch. Adding or deleting a key later does not change running machines."
      actions={keys.data?.data.length !== 0 && add}
    >
      <DataTable
        label="SSH keys"
        query={keys}
        rows={keys.data?.data}
        columns={canUse ? [...columns, deletion.column] : columns}
        empty={
          <EmptyState
            title="No SSH keys yet"
            art="key"
            action={add}
            command="millrace ssh-keys add laptop ~/.ssh/id_ed25519.pub"
          >
            Anyone with the private key can log in to the machine. Paste your public key, or
            generate a new key pair here and download the private key.
          </EmptyState>
        }
      />
      {canUse && location === '/ssh-keys/new' && (
        <AddSshKeyDialog
          onAdded={() => client.invalidateQueries({ queryKey: sshKeysKey })}
          onClose={() => navigate('/ssh-keys')}
        />
      )}
      {deletion.dialog}
    </Page>
  );
}

const columns: Column<SshKey>[] = [
  { name: 'Name', value: ({ name }) => name, cell: ({ name }) => <NameCell name={name} /> },
  {
    name: 'Public key',
    value: ({ public_key }) => public_key,
    cell: ({ name, public_key }) => (
      <Group gap={4} wrap="nowrap">
        <Code className="breakable">{shorten(public_key)}</Code>
        <CopyButton value={public_key} label={`Copy the public key of ${name}`} />
      </Group>
    ),
  },
];

/** Enough of a key to recognize it, e.g. `ssh-ed25519 AAAAC3Nza…k2J9fQ me@laptop`. */
function shorten(key: string): string {
  const [kind = '', body = '', ...comment] = key.split(' ');
  const short = body.length > 24 ? `${body.slice(0, 10)}…${body.slice(-8)}` : body;
  return [kind, short, ...comment].join(' ').slice(0, 80);
}
