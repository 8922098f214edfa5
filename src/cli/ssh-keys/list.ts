// millrace ssh-keys list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson, printTable } from '#cli/output.ts';
import type { SshKey } from '#cloud/schema.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('List the SSH keys of the account')
    .option('--json', 'Print JSON')
    .action(async ({ json }: { json?: true }) => {
      const { data } = await createClient('any').get<{ data: SshKey[] }>('/api/v1/ssh-keys');
      if (json) return printJson(data);
      printTable(
        ['ID', 'NAME', 'PUBLIC KEY'],
        data.map(({ id, name, public_key }) => [id, name, shorten(public_key)]),
      );
    });
}

const shorten = (key: string) =>
  key.length > 60 ? `${key.slice(0, 40)}...${key.slice(-16)}` : key;
