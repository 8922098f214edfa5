// millrace hosts remove.

import { Command } from 'commander';
import { createClient } from '../client.ts';

export function removeCommand(): Command {
  return new Command('remove')
    .description('forget a host that has no machines and no filesystems')
    .argument('<name>')
    .action(async (name: string) => {
      await createClient('session').delete(`/dashboard/api/hosts/${encodeURIComponent(name)}`);
      console.log(`Removed ${name}.`);
    });
}
