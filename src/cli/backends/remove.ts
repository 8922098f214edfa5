// millrace backends remove.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { toBackendPath } from './path.ts';

export function removeCommand(): Command {
  return new Command('remove')
    .description('remove a backend that was added live; requests it has may finish')
    .argument('<id>', 'as model/name, from `millrace backends list`')
    .action(async (id: string) => {
      await createClient('session').delete(await toBackendPath(id));
      console.log(`${id} gets no new requests, and is gone when it has answered those it has.`);
    });
}
