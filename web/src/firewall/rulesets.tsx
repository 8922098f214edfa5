// Rulesets: more rules for the machines that name them when they are launched.

import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { FirewallRule, Ruleset } from '#cloud/schema.ts';
import { get, type List, remove } from '../api.ts';
import { type Column, DataTable, EmptyState } from '../components/data-table.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { useMe } from '../current-user.ts';
import { toSentence } from './rules.ts';
import { RulesetDialog } from './ruleset-dialog.tsx';

const queryKey = ['firewall-rulesets'];

export function Rulesets() {
  const { canUse } = useMe();
  const client = useQueryClient();
  const [location, navigate] = useLocation();
  const [editing, setEditing] = useState<Ruleset | null>(null);
  const rulesets = useQuery({
    queryKey,
    queryFn: () => get<List<Ruleset>>('/api/v1/firewall-rulesets'),
  });
  const refresh = () => client.invalidateQueries({ queryKey });

  const removal = useDelete<Ruleset>({
    action: 'Delete',
    nameOf: ({ name }) => name,
    warning: () => 'Machines launched from now on can’t be given this ruleset.',
    async onRemove({ id }) {
      await remove(`/api/v1/firewall-rulesets/${id}`);
      await refresh();
    },
    done: ({ name }) => `The ruleset “${name}” is deleted.`,
  });

  const make = (
    <Button variant="default" component={Link} href="/firewall/new">
      Make a ruleset
    </Button>
  );
  const columns: Column<Ruleset>[] = [
    {
      name: 'Name',
      cell: ({ name }) => (
        <Text size="sm" fw={500} className="breakable">
          {name}
        </Text>
      ),
    },
    { name: 'Region', cell: ({ region }) => region.name },
    {
      name: 'Lets in',
      cell: ({ rules }) =>
        rules.map((rule) => toSentence(rule as FirewallRule)).join('; ') || 'nothing',
    },
    { name: 'Machines', cell: ({ instance_ids }) => instance_ids.length },
  ];
  if (canUse) {
    columns.push({
      name: '',
      cell: (ruleset) => (
        <Group gap={6} wrap="nowrap" justify="flex-end">
          <Button
            variant="default"
            size="xs"
            onClick={() => setEditing(ruleset)}
            aria-label={`Edit ${ruleset.name}`}
          >
            Edit
          </Button>
          {removal.button(ruleset)}
        </Group>
      ),
    });
  }
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={2} size="h4">
          For some machines
        </Title>
        {canUse && rulesets.data?.data.length !== 0 && make}
      </Group>
      <DataTable
        label="Rulesets"
        query={rulesets}
        rows={rulesets.data?.data}
        columns={columns}
        likely={1}
        empty={
          <EmptyState title="No rulesets" action={canUse && make}>
            A ruleset lets more in to the machines that name it when they are launched, e.g. a web
            server’s ports to web servers only.
          </EmptyState>
        }
      />
      {canUse && location === '/firewall/new' && (
        <RulesetDialog ruleset={null} onSaved={refresh} onClose={() => navigate('/firewall')} />
      )}
      {editing && (
        <RulesetDialog ruleset={editing} onSaved={refresh} onClose={() => setEditing(null)} />
      )}
      {removal.dialog}
    </Stack>
  );
}
