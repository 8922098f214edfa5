// The list of machines: status, how to connect, and actions on one or several of them.

import { Button, Checkbox, Group } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Instance } from '#cloud/schema.ts';
import { type Column, DataTable } from '../components/data-table.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { Page } from '../components/page.tsx';
import { useMe } from '../current-user.ts';
import { nameOf, useInstances } from './instances.ts';
import { useMachineColumns } from './machine-columns.tsx';
import { MachineDialog } from './machine-dialogs.tsx';
import { type MachineAction, MachineMenu } from './machine-menu.tsx';
import { SelectionBar } from './selection-bar.tsx';
import './machines.css';

interface OpenDialog {
  action: MachineAction;
  ids: string[];
}

export default function Machines() {
  const { canUse } = useMe();
  const instances = useInstances();
  const columns = useMachineColumns();
  const [selectedIds, setSelectedIds] = useState<ReadonlySet<string>>(new Set());
  const [open, setOpen] = useState<OpenDialog | null>(null);
  const rows = instances.data?.data;
  const selected = rows?.filter(({ id }) => selectedIds.has(id)) ?? [];

  function select(id: string, isSelected: boolean) {
    const others = [...selectedIds].filter((one) => one !== id);
    setSelectedIds(new Set(isSelected ? [...others, id] : others));
  }
  const selection: Column<Instance> = {
    name: 'Select',
    cell: (instance) => (
      <Checkbox
        aria-label={`Select ${nameOf(instance)}`}
        checked={selectedIds.has(instance.id)}
        onChange={(event) => select(instance.id, event.currentTarget.checked)}
      />
    ),
  };
  const actions: Column<Instance> = {
    name: '',
    cell: (instance) => (
      <Actions
        instance={instance}
        canUse={canUse}
        onChoose={(action) => setOpen({ action, ids: [instance.id] })}
      />
    ),
  };
  const launch = canUse && (
    <Button component={Link} href="/machines/new">
      Launch machine
    </Button>
  );
  return (
    <Page
      title="Machines"
      description="Linux machines that you connect to with SSH."
      actions={rows?.length !== 0 && launch}
    >
      {canUse && rows?.length !== 0 && (
        <SelectionBar
          selected={selected}
          total={rows?.length ?? 0}
          onSelectAll={() => setSelectedIds(new Set(rows?.map(({ id }) => id)))}
          onSelectNone={() => setSelectedIds(new Set())}
          onChoose={(action) => setOpen({ action, ids: selected.map(({ id }) => id) })}
        />
      )}
      <DataTable
        label="Machines"
        query={instances}
        rows={rows}
        columns={canUse ? [selection, ...columns, actions] : [...columns, actions]}
        empty={
          <EmptyState
            title="No machines yet"
            art="machine"
            action={launch}
            command="millrace instances launch cpu_1x_general --wait"
          >
            A machine is a Linux system of your own with an IP address, a disk and, if the host has
            them, GPUs. Launching takes a few seconds. Then you connect with SSH or with the
            terminal in this dashboard.
          </EmptyState>
        }
      />
      {open && (
        <MachineDialog
          action={open.action}
          instances={rows?.filter(({ id }) => open.ids.includes(id)) ?? []}
          onClose={() => setOpen(null)}
        />
      )}
    </Page>
  );
}

interface ActionsProps {
  instance: Instance;
  canUse: boolean;
  onChoose: (action: MachineAction) => void;
}

const Actions = ({ instance, canUse, onChoose }: ActionsProps) => (
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
    <MachineMenu instance={instance} canUse={canUse} onChoose={onChoose} />
  </Group>
);
