// millrace instances logs: what an instance printed while it booted.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { getItem } from '#cli/noun.ts';
import { printJson, printText } from '#cli/output.ts';
import { instances } from './find.ts';

export function logsCommand(): Command {
  return new Command('logs')
    .description('Print the boot log of an instance; needs a sign-in')
    .argument(...instances.argument)
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { json }: { json?: true }) => {
      const client = createClient('session');
      const { id } = await getItem(instances, createClient('any'), wanted);
      const { data } = await client.get<{ data: string }>(
        `/dashboard/api/instances/${id}/boot-log`,
      );
      if (json) return printJson({ id, log: data });
      if (data === '') return console.error(`${id} has not logged anything yet.`);
      // What runs in the instance must not control the terminal.
      printText(data.trimEnd());
    });
}
