// millrace images list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson, printTable } from '#cli/output.ts';
import type { HostImage } from '#cloud/hosts/schema.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('List the images of every host')
    .option('--json', 'Print JSON')
    .action(async ({ json }: { json?: true }) => {
      const { data } = await createClient('session').get<{ data: HostImage[] }>(
        '/dashboard/api/images',
      );
      if (json) return printJson(data);
      printTable(
        ['NAME', 'HOST', 'REGION', 'ARCHITECTURE', 'DESCRIPTION'],
        data.map((image) => [
          image.name,
          image.host,
          image.region,
          image.architecture,
          image.description,
        ]),
      );
    });
}
