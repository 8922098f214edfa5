// millrace ssh-keys delete.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { pickOnly, toPrintable } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import type { SshKey } from '#cloud/schema.ts';

export function deleteCommand(): Command {
  return new Command('delete')
    .description('Delete an SSH key from the account; instances that have it keep it')
    .argument('<key>', 'Id or name, from `millrace ssh-keys list`')
    .option('--yes', 'Do not ask for confirmation')
    .action(async (wanted: string, { yes }: { yes?: true }) => {
      const client = createClient('any');
      const { data } = await client.get<{ data: SshKey[] }>('/api/v1/ssh-keys');
      const matches = data.filter((key) => key.id === wanted || key.name === wanted);
      const command = 'millrace ssh-keys list';
      const { id, name } = pickOnly(matches, { noun: 'SSH key', wanted, command });
      await confirm(`Delete SSH key ${name} (${id})?`, yes);
      await client.delete(`/api/v1/ssh-keys/${encodeURIComponent(id)}`);
      console.log(`Deleted SSH key ${toPrintable(name)}. Instances that have it keep it.`);
    });
}
