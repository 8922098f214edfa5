// The nodes of a host: how much of each is in use, and which machine has which GPU.

import { Anchor, Group, Progress, Stack, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { HostView } from '#cloud/hosts/schema.ts';
import { toCount } from '#lib/text/format.ts';
import { type Column, DataTable } from '../components/data-table.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import type { Gpu, HostNode } from './hosts.ts';

type NameOf = (instanceId: string) => string | null;
type Row = HostNode & { id: string };

export function HostNodes({ host, nameOf }: { host: HostView; nameOf: NameOf }) {
  const columns: Column<Row>[] = [
    {
      name: 'Node',
      value: ({ name }) => name,
      cell: ({ name, online }) => (
        <Group gap={6}>
          <Text size="sm" fw={500} className="breakable">
            {name}
          </Text>
          {!online && <StatusBadge tone="bad">offline</StatusBadge>}
        </Group>
      ),
    },
    {
      name: 'vCPUs',
      value: ({ vcpus_used }) => vcpus_used,
      cell: ({ name, vcpus, vcpus_used }) => (
        <Utilization label={`vCPUs used on ${name}`} used={vcpus_used} total={vcpus} />
      ),
    },
    {
      name: 'Memory (GiB)',
      value: ({ memory_gib_used }) => memory_gib_used,
      cell: ({ name, memory_gib, memory_gib_used }) => (
        <Utilization label={`Memory used on ${name}`} used={memory_gib_used} total={memory_gib} />
      ),
    },
    {
      name: 'Disk (GiB)',
      cell: ({ name, storage_gib, storage_gib_used }) => (
        <Utilization label={`Disk used on ${name}`} used={storage_gib_used} total={storage_gib} />
      ),
    },
    { name: 'GPUs', cell: ({ gpus }) => <Gpus gpus={gpus} nameOf={nameOf} /> },
  ];
  return (
    <DataTable
      label={`Nodes of ${host.name}`}
      name={`${host.id}-`}
      rows={host.nodes.map((node) => ({ ...node, id: node.name }))}
      columns={columns}
      empty={
        <Text size="sm" c="dimmed">
          Unknown until the host has responded once.
        </Text>
      }
    />
  );
}

function Utilization({ label, used, total }: { label: string; used: number; total: number }) {
  const percent = total === 0 ? 0 : Math.min(100, (used / total) * 100);
  return (
    <Stack gap={4} miw={96}>
      <Text size="sm" className="one-line">
        {toCount(used)} of {toCount(total)}
      </Text>
      <Progress value={percent} size="sm" aria-label={label} />
    </Stack>
  );
}

function Gpus({ gpus, nameOf }: { gpus: Gpu[]; nameOf: NameOf }) {
  if (gpus.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        None
      </Text>
    );
  }
  return (
    <ul className="gpus">
      {gpus.map(({ address, model, memory_gib, instance_id, used_by_models }) => (
        <li key={address}>
          <Text size="sm">
            {model} · {toCount(memory_gib)} GiB
          </Text>
          <Text size="xs" c="dimmed" className="breakable">
            {address} ·{' '}
            {instance_id === null ? (
              used_by_models ? (
                'used by models on this host'
              ) : (
                'free'
              )
            ) : (
              <Anchor
                component={Link}
                href={`/machines/${instance_id}`}
                size="xs"
                underline="always"
              >
                {nameOf(instance_id) ?? `machine ${instance_id.slice(0, 8)} of another account`}
              </Anchor>
            )}
          </Text>
        </li>
      ))}
    </ul>
  );
}
