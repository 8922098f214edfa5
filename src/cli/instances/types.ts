// millrace instances types: the instance types that can be launched now, or all of them.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { toTable } from '#cli/output.ts';
import { nameProgram } from '#cli/program-name.ts';
import { addView } from '#cli/view.ts';
import type { InstanceTypes } from '#cloud/schema.ts';
import { toHourlyPrice } from '#lib/text/format.ts';

export function typesCommand(): Command {
  const command = new Command('types')
    .description('List instance types that have capacity')
    .option('--all', 'Include types without capacity');
  return addView(command, async ({ all }: { all?: true }) => {
    const { data } = await createClient('any').get<{ data: InstanceTypes }>(
      '/api/v1/instance-types',
    );
    const rows = Object.values(data)
      .filter((row) => all || row.regions_with_capacity_available.length > 0)
      .map(({ instance_type: { name, description, specs, price_cents_per_hour }, ...row }) => [
        name,
        description,
        String(specs.vcpus),
        `${specs.memory_gib} GiB`,
        String(specs.gpus),
        toHourlyPrice(price_cents_per_hour),
        row.regions_with_capacity_available.map((region) => region.name).join(',') || '-',
      ]);
    const headers = ['TYPE', 'DESCRIPTION', 'VCPUS', 'MEMORY', 'GPUS', 'PRICE', 'CAPACITY'];
    if (rows.length === 0 && Object.keys(data).length > 0) return { data, text: allTaken() };
    return { data, text: toTable('instance types', headers, rows, ['DESCRIPTION']) };
  });
}

const allTaken = () =>
  nameProgram(
    'No instance type has capacity now. Machines that end free theirs: see `millrace instances list`. ' +
      'To list all types: `millrace instances types --all`.',
  );
