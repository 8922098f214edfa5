// millrace ssh-keys: the SSH keys that launched instances accept.

import type { Command } from 'commander';
import { changeCommand, listCommand, type Noun, nounCommand } from '#cli/noun.ts';
import { atOnce } from '#cli/pages.ts';
import type { SshKey } from '#cloud/schema.ts';
import { addCommand } from './add.ts';
import { generateCommand } from './generate.ts';

export const sshKeys: Noun<SshKey> = {
  noun: 'SSH key',
  plural: 'SSH keys',
  command: 'millrace ssh-keys list',
  needs: 'any',
  argument: ['<key>', 'Id, its first characters, or name, from `millrace ssh-keys list`'],
  namesOf: ({ name }) => [name],
  read: atOnce('/api/v1/ssh-keys'),
};

export const sshKeysCommand = (): Command =>
  nounCommand('ssh-keys', 'Add, generate, list and delete SSH keys', [
    addCommand(),
    generateCommand(),
    listCommand(sshKeys, {
      description: 'List the SSH keys of the account',
      columns: {
        ID: ({ id }) => id,
        NAME: ({ name }) => name,
        'PUBLIC KEY': ({ public_key: key }) =>
          key.length > 60 ? `${key.slice(0, 40)}...${key.slice(-16)}` : key,
      },
    }),
    changeCommand(sshKeys, 'delete', {
      description: 'Delete an SSH key from the account; instances that have it keep it',
      question: ({ id, name }) => `Delete SSH key ${name} (${id})?`,
      async run(client, { id, name }) {
        await client.delete(`/api/v1/ssh-keys/${encodeURIComponent(id)}?machines=keep`);
        const text = `Deleted SSH key ${name}. Instances that have it keep it.`;
        return { data: { id, name }, text };
      },
    }),
  ]);
