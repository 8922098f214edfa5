// millrace hosts remove.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';

export function removeCommand(): Command {
  return new Command('remove')
    .description('forget a host that has no machines and no filesystems')
    .argument('<name>')
    .option('--forget-machines', 'of a host that will never come back: they count as terminated')
    .action(async (name: string, { forgetMachines }: { forgetMachines?: true }) => {
      const query = forgetMachines ? '?forget=true' : '';
      const path = `/dashboard/api/hosts/${encodeURIComponent(name)}${query}`;
      await createClient('session').delete(path);
      console.log(`Removed ${name}.`);
    });
}
