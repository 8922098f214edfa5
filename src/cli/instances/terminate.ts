// millrace instances terminate.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { confirm } from '#cli/prompts.ts';
import { listInstances, pickInstance } from './find.ts';

export function terminateCommand(): Command {
  return new Command('terminate')
    .description('Terminate instances and delete their disks; filesystems are kept')
    .argument('<instance...>', 'Ids or names')
    .option('--yes', 'Do not ask for confirmation')
    .action(async (wanted: string[], { yes }: { yes?: true }) => {
      const client = createClient('any');
      const instances = await listInstances(client);
      const chosen = wanted.map((one) => pickInstance(instances, one));
      const names = chosen.map(({ id, name }) => (name ? `${name} (${id})` : id)).join(', ');
      await confirm(`Terminate ${names}? The data on the disks is lost.`, yes);
      const ids = chosen.map(({ id }) => id);
      await client.post('/api/v1/instance-operations/terminate', { instance_ids: ids });
      for (const id of ids) console.log(`Terminating ${id}.`);
    });
}
