// millrace hosts remove.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { getHost, hostArgument, toHostPath } from './find.ts';

interface Options {
  forgetMachines?: true;
  yes?: true;
  json?: true;
}

export function removeCommand(): Command {
  return new Command('remove')
    .description('Remove a host that has no instances and no filesystems')
    .argument(...hostArgument)
    .option(
      '--forget-machines',
      'For a host that will never come back: mark its instances as terminated and its filesystems as lost',
    )
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(remove);
}

async function remove(wanted: string, { forgetMachines, yes, json }: Options): Promise<void> {
  const client = createClient('session');
  const host = await getHost(client, wanted);
  const { id, name } = host;
  const consequence = forgetMachines
    ? ' Its instances count as terminated and its filesystems as lost.'
    : '';
  await confirm(`Remove host ${name}?${consequence}`, yes);
  const query = forgetMachines ? '?forget=true' : '';
  await client.delete(`${toHostPath(host)}${query}`);
  report({ id, name }, `Removed host ${name}.`, json);
}
