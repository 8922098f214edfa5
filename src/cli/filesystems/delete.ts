// millrace filesystems delete.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { pickOnly, printText } from '#cli/output.ts';
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
      const matches = data.filter(({ id, name }) => id === wanted || name === wanted);
      const command = 'millrace filesystems list';
      const found = pickOnly(matches, { noun: 'filesystem', wanted, command });
      await confirm(`Delete filesystem ${found.name} and everything in it?`, yes);
      await client.delete(`/api/v1/filesystems/${found.id}`);
      printText(`Deleted filesystem ${found.name}.`);
    });
}
