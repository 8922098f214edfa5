// millrace ssh-keys delete.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError, toPrintable } from '#cli/output.ts';
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
      const { id, name } = pick(data, wanted);
      await confirm(`Delete SSH key ${name} (${id})?`, yes);
      await client.delete(`/api/v1/ssh-keys/${encodeURIComponent(id)}`);
      console.log(`Deleted SSH key ${toPrintable(name)}. Instances that have it keep it.`);
    });
}

function pick(keys: readonly SshKey[], wanted: string): SshKey {
  const matches = keys.filter(({ id, name }) => id === wanted || name === wanted);
  const [only, second] = matches;
  if (only === undefined) {
    throw new CliError(`There is no SSH key ${wanted}. See \`millrace ssh-keys list\`.`);
  }
  if (second !== undefined) {
    const ids = matches.map(({ id }) => id).join(', ');
    throw new CliError(`Several SSH keys are called ${wanted}. Give the id: ${ids}.`);
  }
  return only;
}
