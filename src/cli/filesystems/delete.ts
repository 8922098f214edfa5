// millrace filesystems delete.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import type { Filesystem } from '#cloud/schema.ts';

export function deleteCommand(): Command {
  return new Command('delete')
    .description('Delete a filesystem and everything in it')
    .argument('<filesystem>', 'Id or name')
    .option('--yes', 'Do not ask for confirmation')
    .action(async (wanted: string, { yes }: { yes?: true }) => {
      const client = createClient('any');
      const { data } = await client.get<{ data: Filesystem[] }>('/api/v1/file-systems');
      const found = data.find(({ id, name }) => id === wanted || name === wanted);
      if (found === undefined)
        throw new CliError(`There is no filesystem ${wanted}. See \`millrace filesystems list\`.`);
      await confirm(`Delete filesystem ${found.name} and everything in it?`, yes);
      await client.delete(`/api/v1/filesystems/${found.id}`);
      console.log(`Deleted filesystem ${found.name}.`);
    });
}
