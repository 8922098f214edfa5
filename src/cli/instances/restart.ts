// millrace instances restart.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { listInstances, pickInstance } from './find.ts';

interface Options {
  hard?: true;
  json?: true;
}

export function restartCommand(): Command {
  return new Command('restart')
    .description('Restart instances; they keep their disks and addresses')
    .argument('<instance...>', 'Ids, their first characters, or names')
    .option('--hard', 'Power-cycle them instead of a clean restart')
    .option('--json', 'Print JSON')
    .action(async (wanted: string[], { hard, json }: Options) => {
      const client = createClient('any');
      const instances = await listInstances(client);
      const ids = wanted.map((one) => pickInstance(instances, one).id);
      const operation = hard ? 'power-cycle' : 'restart';
      await client.post(`/api/v1/instance-operations/${operation}`, { instance_ids: ids });
      report(
        ids.map((id) => ({ id })),
        ids.map((id) => `Restarting ${id}.`).join('\n'),
        json,
      );
    });
}
