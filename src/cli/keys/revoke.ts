// millrace keys revoke.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';

export function revokeCommand(): Command {
  return new Command('revoke')
    .description('revoke a key at once')
    .argument('<id>', 'from `millrace keys list`')
    .action(async (id: string) => {
      await createClient('session').delete(`/dashboard/api/api-keys/${encodeURIComponent(id)}`);
      console.log('Revoked.');
    });
}
