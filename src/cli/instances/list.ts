// millrace instances list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson, printTable } from '#cli/output.ts';
import { listInstances } from './find.ts';
import { explainInstances } from './reasons.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('List instances')
    .option('--json', 'Print JSON')
    .action(async ({ json }: { json?: true }) => {
      const data = await listInstances(createClient('any'));
      if (json) return printJson(data);
      printTable(
        ['ID', 'NAME', 'STATUS', 'IP', 'PRIVATE IP', 'TYPE', 'REGION', 'CENTS/HOUR'],
        data.map(({ id, name, status, ip, private_ip, ssh_port, instance_type, region }) => [
          id,
          name ?? '-',
          status,
          ip === undefined ? '-' : ssh_port === undefined ? ip : `${ip}:${ssh_port}`,
          // Without a network, the private address is the public one.
          private_ip === ip ? '-' : (private_ip ?? '-'),
          instance_type.name,
          region.name,
          String(instance_type.price_cents_per_hour),
        ]),
      );
      const unhealthy = data.filter(({ status }) => status === 'unhealthy').map(({ id }) => id);
      for (const line of await explainInstances(unhealthy)) console.error(line);
    });
}
