// millrace hosts remove.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { confirm } from '#cli/prompts.ts';

interface Options {
  forgetMachines?: true;
  yes?: true;
}

export function removeCommand(): Command {
  return new Command('remove')
    .description('Remove a host that has no instances and no filesystems')
    .argument('<name>', 'Name, from `millrace hosts list`')
    .option(
      '--forget-machines',
      'For a host that will never come back: mark its instances as terminated and its filesystems as lost',
    )
    .option('--yes', 'Do not ask for confirmation')
    .action(remove);
}

async function remove(name: string, { forgetMachines, yes }: Options): Promise<void> {
  const client = createClient('session');
  const consequence = forgetMachines
    ? ' Its instances count as terminated and its filesystems as lost.'
    : '';
  await confirm(`Remove host ${name}?${consequence}`, yes);
  const query = forgetMachines ? '?forget=true' : '';
  await client.delete(`/dashboard/api/hosts/${encodeURIComponent(name)}${query}`);
  console.log(`Removed host ${name}.`);
}
