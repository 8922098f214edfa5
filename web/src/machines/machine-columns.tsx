// The columns that describe a machine: name and tags, status, type and price, and the ssh command.

import { Text } from '@mantine/core';
import type { Instance, InstanceDetail } from '#cloud/schema.ts';
import { toHourlyPrice } from '#lib/text/format.ts';
import { type Column, NameCell } from '../components/data-table.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { nameOf, toMachinePath, useDetails } from './instances.ts';
import { MachineStatus } from './machine-status.tsx';
import { SshCommand } from './ssh-command.tsx';
import { TagBadges } from './tag-badges.tsx';
import { fromTag } from './tags.ts';

export function useMachineColumns(): Column<Instance>[] {
  const details = useDetails();
  return [
    {
      name: 'Name',
      value: (instance) => [nameOf(instance), ...(instance.tags ?? []).map(fromTag)].join(' '),
      cell: (instance) => <Name instance={instance} />,
    },
    {
      name: 'Status',
      filter: true,
      value: ({ status }) => status,
      cell: (instance) => <MachineStatus instance={instance} detail={details.get(instance.id)} />,
    },
    {
      name: 'Type',
      filter: true,
      value: ({ instance_type }) => instance_type.description,
      cell: (instance) => <Type instance={instance} detail={details.get(instance.id)} />,
    },
    {
      name: 'Connect',
      value: ({ ip }) => ip ?? null,
      cell: (instance) => (
        <SshCommand instance={instance} detail={details.get(instance.id)} brief />
      ),
    },
  ];
}

interface CellProps {
  instance: Instance;
  /** Undefined while the details load. */
  detail: InstanceDetail | undefined;
}

const Name = ({ instance }: Pick<CellProps, 'instance'>) => (
  <NameCell name={nameOf(instance)} href={toMachinePath(instance)}>
    <TagBadges tags={instance.tags ?? []} />
  </NameCell>
);

const Type = ({ instance: { instance_type, region }, detail }: CellProps) => (
  <div>
    <Text size="sm">{instance_type.description}</Text>
    <Text size="xs" c="dimmed">
      {toHourlyPrice(instance_type.price_cents_per_hour)} · {region.name}
      {detail && (
        <>
          {' '}
          · launched <RelativeTime at={detail.launched_at} />
        </>
      )}
    </Text>
  </div>
);
