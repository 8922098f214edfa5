// millrace instances types: the instance types that can be launched now, or all of them.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson, printTable } from '#cli/output.ts';
import type { InstanceTypes } from '#cloud/schema.ts';

export function typesCommand(): Command {
  return new Command('types')
    .description('List instance types that have capacity')
    .option('--all', 'Include types without capacity')
    .option('--json', 'Print JSON')
    .action(async ({ all, json }: { all?: true; json?: true }) => {
      const { data } = await createClient('any').get<{ data: InstanceTypes }>(
        '/api/v1/instance-types',
      );
      if (json) return printJson(data);
      const rows = Object.values(data)
        .filter((row) => all || row.regions_with_capacity_available.length > 0)
        .map(({ instance_type: { name, description, specs, price_cents_per_hour }, ...row }) => [
          name,
          description,
          String(specs.vcpus),
          `${specs.memory_gib} GiB`,
          String(specs.gpus),
          String(price_cents_per_hour),
          row.regions_with_capacity_available.map((region) => region.name).join(',') || '-',
        ]);
      printTable(
        ['TYPE', 'DESCRIPTION', 'VCPUS', 'MEMORY', 'GPUS', 'CENTS/HOUR', 'CAPACITY'],
        rows,
      );
    });
}
