// millrace ssh-keys delete.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';

export function deleteCommand(): Command {
  return new Command('delete')
    .description('delete a key from the account')
    .argument('<id>', 'from `millrace ssh-keys list`')
    .action(async (id: string) => {
      await createClient('any').delete(`/api/v1/ssh-keys/${encodeURIComponent(id)}`);
      console.log('Deleted. Machines that have it already keep it.');
    });
}
