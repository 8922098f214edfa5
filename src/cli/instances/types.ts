// millrace instances types: the instance types that can be launched now, or all of them.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { type Columns, toTable } from '#cli/output.ts';
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
    const shown = Object.values(data).filter(
      (row) => all || row.regions_with_capacity_available.length > 0,
    );
    if (shown.length === 0 && Object.keys(data).length > 0) return { data, text: allTaken() };
    return { data, text: toTable('instance types', shown, columns, ['DESCRIPTION']) };
  });
}

const columns: Columns<InstanceTypes[string]> = {
  TYPE: ({ instance_type: type }) => type.name,
  DESCRIPTION: ({ instance_type: type }) => type.description,
  VCPUS: ({ instance_type: type }) => String(type.specs.vcpus),
  MEMORY: ({ instance_type: type }) => `${type.specs.memory_gib} GiB`,
  GPUS: ({ instance_type: type }) => String(type.specs.gpus),
  PRICE: ({ instance_type: type }) => toHourlyPrice(type.price_cents_per_hour),
  CAPACITY: ({ regions_with_capacity_available: regions }) =>
    regions.map(({ name }) => name).join(',') || '-',
};

const allTaken = () =>
  nameProgram(
    'No instance type has capacity now. Machines that end free theirs: see `millrace instances list`. ' +
      'To list all types: `millrace instances types --all`.',
  );
