// millrace instances terminate.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { withQuestions } from '#cli/questions.ts';
import { listInstances, pickInstance } from './find.ts';

export function terminateCommand(): Command {
  return new Command('terminate')
    .description('end machines and remove their disks; filesystems stay')
    .argument('<instance...>', 'ids or names')
    .option('--yes', "don't ask")
    .action(async (wanted: string[], { yes }: { yes?: true }) => {
      const client = createClient('any');
      const instances = await listInstances(client);
      const chosen = wanted.map((one) => pickInstance(instances, one));
      if (!yes && process.stdin.isTTY) {
        const names = chosen.map(({ id, name }) => (name ? `${name} (${id})` : id)).join(', ');
        const answer = await withQuestions(({ ask }) =>
          ask(`Terminate ${names}? Their disks are lost. [y/N] `),
        );
        if (!/^y(es)?$/i.test(answer)) throw new CliError('Nothing was terminated.');
      }
      const ids = chosen.map(({ id }) => id);
      await client.post('/api/v1/instance-operations/terminate', { instance_ids: ids });
      for (const id of ids) console.log(`Terminating ${id}.`);
    });
}
