// millrace instances rename.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import type { Instance } from '#cloud/schema.ts';
import { listInstances, pickInstance } from './find.ts';

export function renameCommand(): Command {
  return new Command('rename')
    .description('Change the name of an instance')
    .argument('<instance>', 'Id, its first characters, or name')
    .argument('<name>', 'New name')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, name: string, { json }: { json?: true }) => {
      const client = createClient('any');
      const { id } = pickInstance(await listInstances(client), wanted);
      const { data } = await client.post<{ data: Instance }>(`/api/v1/instances/${id}`, { name });
      report(data, `Renamed ${id} to ${name}.`, json);
    });
}
