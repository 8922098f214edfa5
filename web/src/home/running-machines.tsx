// The account's machines and what they cost per hour.

import { Anchor, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Instance } from '#cloud/schema.ts';
import { toCounted, toHourlyPrice } from '#lib/text/format.ts';
import { type Column, DataTable } from '../components/data-table.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { Section } from '../components/section.tsx';
import { nameOf, toMachinePath, useDetails, useInstances } from '../machines/instances.ts';
import { MachineStatus } from '../machines/machine-status.tsx';

const shown = 6;

export function RunningMachines() {
  const instances = useInstances();
  const details = useDetails();
  const machines = instances.data?.data.filter(({ status }) => status !== 'terminated') ?? [];
  if (machines.length === 0) return null;
  const cents = machines.reduce((sum, one) => sum + one.instance_type.price_cents_per_hour, 0);
  const columns: Column<Instance>[] = [
    {
      name: 'Machine',
      cell: (machine) => (
        <Anchor
          component={Link}
          href={toMachinePath(machine)}
          size="sm"
          fw={500}
          className="breakable"
        >
          {nameOf(machine)}
        </Anchor>
      ),
    },
    {
      name: 'Status',
      cell: (machine) => <MachineStatus instance={machine} detail={details.get(machine.id)} />,
    },
    { name: 'Type', cell: ({ instance_type }) => instance_type.description },
    {
      name: 'Launched',
      cell: ({ id }) => {
        const at = details.get(id)?.launched_at;
        return at === undefined ? '–' : <RelativeTime at={at} />;
      },
    },
    {
      name: 'Cost',
      isNumber: true,
      cell: ({ instance_type }) => toHourlyPrice(instance_type.price_cents_per_hour),
    },
  ];
  return (
    <Section
      title="Machines"
      description={`${toCounted(machines.length, 'machine')}, ${toHourlyPrice(cents)} together.`}
      actions={
        <Anchor component={Link} href="/machines" size="sm" underline="always">
          All machines
        </Anchor>
      }
    >
      <DataTable label="Machines" rows={machines.slice(0, shown)} columns={columns} empty={null} />
      {machines.length > shown && (
        <Text size="xs" c="dimmed">
          and {machines.length - shown} more
        </Text>
      )}
    </Section>
  );
}
