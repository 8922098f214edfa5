// millrace ssh-keys list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { toTable } from '#cli/output.ts';
import { addView } from '#cli/view.ts';
import { listSshKeys } from './find.ts';

export const listCommand = (): Command =>
  addView(new Command('list').description('List the SSH keys of the account'), async () => {
    const data = await listSshKeys(createClient('any'));
    const rows = data.map(({ id, name, public_key }) => [id, name, shorten(public_key)]);
    return { data, text: toTable('SSH keys', ['ID', 'NAME', 'PUBLIC KEY'], rows) };
  });

const shorten = (key: string) =>
  key.length > 60 ? `${key.slice(0, 40)}...${key.slice(-16)}` : key;
