// millrace instances rename.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { listInstances, pickInstance } from './find.ts';

export function renameCommand(): Command {
  return new Command('rename')
    .description('Change the name of an instance')
    .argument('<instance>', 'Id or name')
    .argument('<name>', 'New name')
    .action(async (wanted: string, name: string) => {
      const client = createClient('any');
      const { id } = pickInstance(await listInstances(client), wanted);
      await client.post(`/api/v1/instances/${id}`, { name });
      console.log(`Renamed ${id} to ${name}.`);
    });
}
