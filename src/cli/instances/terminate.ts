// millrace instances terminate.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { listInstances, pickInstance } from './find.ts';

export function terminateCommand(): Command {
  return new Command('terminate')
    .description('Terminate instances and delete their disks; filesystems are kept')
    .argument('<instance...>', 'Ids, their first characters, or names')
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (wanted: string[], { yes, json }: { yes?: true; json?: true }) => {
      const client = createClient('any');
      const instances = await listInstances(client);
      const chosen = wanted.map((one) => pickInstance(instances, one));
      const names = chosen.map(({ id, name }) => (name ? `${name} (${id})` : id)).join(', ');
      await confirm(`Terminate ${names}? The data on the disks is lost.`, yes);
      const ids = chosen.map(({ id }) => id);
      await client.post('/api/v1/instance-operations/terminate', { instance_ids: ids });
      report(
        ids.map((id) => ({ id })),
        ids.map((id) => `Terminating ${id}.`).join('\n'),
        json,
      );
    });
}
