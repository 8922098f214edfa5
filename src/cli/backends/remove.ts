// millrace backends remove.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { confirm } from '#cli/prompts.ts';
import { toBackendPath } from './path.ts';

export function removeCommand(): Command {
  return new Command('remove')
    .description('Remove a backend that was added live; its running requests finish first')
    .argument('<id>', 'Id as model/name, from `millrace backends list`')
    .option('--yes', 'Do not ask for confirmation')
    .action(async (id: string, { yes }: { yes?: true }) => {
      const path = await toBackendPath(id);
      await confirm(`Remove backend ${id}?`, yes);
      await createClient('session').delete(path);
      console.log(`${id} gets no new requests. It is removed once its running requests finish.`);
    });
}
