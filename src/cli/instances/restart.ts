// millrace instances restart.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { listInstances, pickInstance } from './find.ts';

export function restartCommand(): Command {
  return new Command('restart')
    .description('Restart instances; they keep their disks and addresses')
    .argument('<instance...>', 'Ids or names')
    .option('--hard', 'Power-cycle them instead of a clean restart')
    .action(async (wanted: string[], { hard }: { hard?: true }) => {
      const client = createClient('any');
      const instances = await listInstances(client);
      const ids = wanted.map((one) => pickInstance(instances, one).id);
      const operation = hard ? 'power-cycle' : 'restart';
      await client.post(`/api/v1/instance-operations/${operation}`, { instance_ids: ids });
      for (const id of ids) console.log(`Restarting ${id}.`);
    });
}
