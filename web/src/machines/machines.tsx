// Machines: what runs, how to get in, and what can be done to one or several at once.

import { Badge, Button, Checkbox, Code, Group, Text } from '@mantine/core';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { Instance, InstanceDetail } from '#cloud/schema.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { type Column, DataTable, EmptyState } from '../components/data-table.tsx';
import { Page } from '../components/page.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { useMe } from '../current-user.ts';
import { nameOf, toPrice, toSshCommand, useDetails, useInstances } from './instances.ts';
import { LaunchDialog } from './launch-dialog.tsx';
import { MachineDialog } from './machine-dialogs.tsx';
import { MachineMenu, type Task } from './machine-menu.tsx';
import { Status } from './machine-status.tsx';
import { SelectionBar } from './selection-bar.tsx';
import { fromTag } from './tags.ts';
import './machines.css';

export default function Machines() {
  const { canUse } = useMe();
  const [location, navigate] = useLocation();
  const instances = useInstances();
  const details = useDetails();
  const [chosenIds, setChosenIds] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState<{ task: Task; ids: string[] } | null>(null);
  const rows = instances.data?.data;
  const chosen = rows?.filter(({ id }) => chosenIds.has(id)) ?? [];

  function choose(id: string, isChosen: boolean) {
    const others = [...chosenIds].filter((one) => one !== id);
    setChosenIds(new Set(isChosen ? [...others, id] : others));
  }

  const columns: Column<Instance>[] = [
    { name: 'Name', cell: (instance) => <Name instance={instance} /> },
    {
      name: 'Status',
      cell: (instance) => <Status instance={instance} detail={details.get(instance.id)} />,
    },
    {
      name: 'Type',
      cell: ({ id, instance_type, region }) => (
        <div>
          <Text size="sm">{instance_type.description}</Text>
          <Text size="xs" c="dimmed">
            {toPrice(instance_type.price_cents_per_hour)} · {region.name}
            {details.has(id) && ' · '}
            {details.has(id) && <RelativeTime at={details.get(id)?.launched_at ?? ''} />}
          </Text>
        </div>
      ),
    },
    {
      name: 'Get in',
      cell: (instance) => <SshCommand instance={instance} detail={details.get(instance.id)} />,
    },
    {
      name: '',
      cell: (instance) => (
        <Group gap={6} wrap="nowrap" justify="flex-end">
          {canUse && instance.status === 'active' && (
            <Button
              component={Link}
              href={`/machines/${instance.id}/terminal`}
              variant="default"
              size="xs"
              aria-label={`Terminal of ${nameOf(instance)}`}
            >
              Terminal
            </Button>
          )}
          <MachineMenu
            instance={instance}
            canUse={canUse}
            onChoose={(task) => setOpen({ task, ids: [instance.id] })}
          />
        </Group>
      ),
    },
  ];
  if (canUse) {
    columns.unshift({
      name: 'Select',
      cell: (instance) => (
        <Checkbox
          aria-label={`Select ${nameOf(instance)}`}
          checked={chosenIds.has(instance.id)}
          onChange={(event) => choose(instance.id, event.currentTarget.checked)}
        />
      ),
    });
  }

  const launch = (
    <Button component={Link} href="/machines/new">
      Launch a machine
    </Button>
  );
  return (
    <Page
      title="Machines"
      description="Linux machines on this server, reached by ssh. The list shows changes as they happen."
      actions={canUse && rows?.length !== 0 && launch}
    >
      {canUse && rows?.length !== 0 && (
        <SelectionBar
          chosen={chosen}
          total={rows?.length ?? 0}
          onSelectAll={() => setChosenIds(new Set(rows?.map(({ id }) => id)))}
          onSelectNone={() => setChosenIds(new Set())}
          onChoose={(task) => setOpen({ task, ids: chosen.map(({ id }) => id) })}
        />
      )}
      <DataTable
        label="Machines"
        query={instances}
        rows={rows}
        columns={columns}
        empty={
          <EmptyState title="No machines yet" action={canUse && launch}>
            A machine is a Linux system of your own with an address, a disk and, where this host has
            them, GPUs. Launching takes three steps and a few seconds; then you get in by ssh or by
            a terminal in this page.
          </EmptyState>
        }
      />
      {canUse && location === '/machines/new' && (
        <LaunchDialog onClose={() => navigate('/machines')} />
      )}
      {open && (
        <MachineDialog
          task={open.task}
          instances={rows?.filter(({ id }) => open.ids.includes(id)) ?? []}
          onClose={() => setOpen(null)}
        />
      )}
    </Page>
  );
}

const Name = ({ instance }: { instance: Instance }) => (
  <div>
    <Text size="sm" fw={500} className="breakable">
      {nameOf(instance)}
    </Text>
    <Group gap={4}>
      {instance.tags?.map((tag) => (
        <Badge key={tag.key} variant="default" size="sm" tt="none">
          {fromTag(tag)}
        </Badge>
      ))}
    </Group>
  </div>
);

function SshCommand(props: { instance: Instance; detail: InstanceDetail | undefined }) {
  const { instance, detail } = props;
  const hasKeyFile = detail?.has_key_file === true;
  const command = toSshCommand(instance, hasKeyFile);
  if (command === null || instance.status !== 'active') {
    return (
      <Text size="sm" c="dimmed">
        once it is active
      </Text>
    );
  }
  return (
    <div>
      <Group gap={4} wrap="nowrap">
        <Code className="breakable">{command}</Code>
        <CopyButton value={command} label={`Copy the ssh command of ${nameOf(instance)}`} />
      </Group>
      {!hasKeyFile && (
        <Text size="xs" c="dimmed" className="breakable">
          Key “{instance.ssh_key_names[0]}”. Add -i with its private file if ssh can’t find it.
        </Text>
      )}
    </div>
  );
}
