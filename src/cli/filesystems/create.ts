// millrace filesystems create.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson, printText } from '#cli/output.ts';
import type { Filesystem } from '#cloud/schema.ts';

export function createCommand(): Command {
  return new Command('create')
    .description('Create a filesystem')
    .argument('<name>', 'Name for the filesystem')
    .argument('<region>', 'Region of the instances that will use it, e.g. us-west-1')
    .option('--json', 'Print JSON')
    .action(async (name: string, region: string, { json }: { json?: true }) => {
      const { data } = await createClient('any').post<{ data: Filesystem }>('/api/v1/filesystems', {
        name,
        region,
      });
      if (json) return printJson(data);
      printText(
        `Created filesystem ${data.name} (${data.id}). Instances mount it at ${data.mount_point}.`,
      );
    });
}
