// millrace filesystems delete.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { listFilesystems, pickFilesystem } from './find.ts';

export function deleteCommand(): Command {
  return new Command('delete')
    .description('Delete a filesystem and everything in it')
    .argument('<filesystem>', 'Id, its first characters, or name')
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { yes, json }: { yes?: true; json?: true }) => {
      const client = createClient('any');
      const { id, name } = pickFilesystem(await listFilesystems(client), wanted);
      await confirm(`Delete filesystem ${name} and everything in it?`, yes);
      await client.delete(`/api/v1/filesystems/${id}`);
      report({ id, name }, `Deleted filesystem ${name}.`, json);
    });
}
