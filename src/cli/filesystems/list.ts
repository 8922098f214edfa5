// millrace filesystems list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson, printTable } from '#cli/output.ts';
import type { Filesystem } from '#cloud/schema.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('List filesystems')
    .option('--json', 'Print JSON')
    .action(async ({ json }: { json?: true }) => {
      const { data } = await createClient('any').get<{ data: Filesystem[] }>(
        '/api/v1/file-systems',
      );
      if (json) return printJson(data);
      printTable(
        ['ID', 'NAME', 'REGION', 'MOUNT POINT', 'BYTES', 'IN USE'],
        data.map(({ id, name, region, mount_point, bytes_used, is_in_use }) => [
          id,
          name,
          region.name,
          mount_point,
          bytes_used === undefined ? '-' : String(bytes_used),
          is_in_use ? 'yes' : 'no',
        ]),
      );
    });
}
