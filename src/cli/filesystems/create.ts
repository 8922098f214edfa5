// millrace filesystems create.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson } from '#cli/output.ts';
import type { Filesystem } from '#cloud/schema.ts';

export function createCommand(): Command {
  return new Command('create')
    .description('create a filesystem')
    .argument('<name>')
    .argument('<region>', 'where the machines are that shall use it, e.g. us-west-1')
    .option('--json', 'print JSON')
    .action(async (name: string, region: string, { json }: { json?: true }) => {
      const { data } = await createClient('any').post<{ data: Filesystem }>('/api/v1/filesystems', {
        name,
        region,
      });
      if (json) return printJson(data);
      console.log(`Created ${data.name} (${data.id}). Machines see it at ${data.mount_point}.`);
    });
}
