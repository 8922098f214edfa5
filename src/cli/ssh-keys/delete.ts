// millrace ssh-keys delete.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { getSshKey } from './find.ts';

export function deleteCommand(): Command {
  return new Command('delete')
    .description('Delete an SSH key from the account; instances that have it keep it')
    .argument('<key>', 'Id, its first characters, or name, from `millrace ssh-keys list`')
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { yes, json }: { yes?: true; json?: true }) => {
      const client = createClient('any');
      const { id, name } = await getSshKey(client, wanted);
      await confirm(`Delete SSH key ${name} (${id})?`, yes);
      await client.delete(`/api/v1/ssh-keys/${encodeURIComponent(id)}`);
      report({ id, name }, `Deleted SSH key ${name}. Instances that have it keep it.`, json);
    });
}
