// Rulesets: additional rules for the machines that are launched with them.

import { Button, Group } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { FirewallRule, Ruleset } from '#cloud/schema.ts';
import { type Column, DataTable, NameCell, RowButton } from '../components/data-table.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { Section } from '../components/section.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { useMe } from '../current-user.ts';
import { rulesetsKey, useRulesets } from '../queries.ts';
import { toRuleText } from './rules.ts';
import { RulesetDialog } from './ruleset-dialog.tsx';

export function Rulesets() {
  const { canUse } = useMe();
  const client = useQueryClient();
  const [location, navigate] = useLocation();
  const [edited, setEdited] = useState<Ruleset | null>(null);
  const rulesets = useRulesets();
  const refresh = () => client.invalidateQueries({ queryKey: rulesetsKey });
  const deletion = useDelete<Ruleset>({
    nameOf: ({ name }) => name,
    warning: () => 'New machines can’t use this ruleset.',
    pathOf: ({ id }) => `/api/v1/firewall-rulesets/${id}`,
    queryKeys: [rulesetsKey],
    doneMessage: ({ name }) => `Ruleset “${name}” deleted.`,
  });
  const actions: Column<Ruleset> = {
    name: '',
    cell: (ruleset) => (
      <Group gap={6} wrap="nowrap" justify="flex-end">
        <RowButton action="Edit" name={ruleset.name} onClick={() => setEdited(ruleset)} />
        {deletion.button(ruleset)}
      </Group>
    ),
  };
  const create = canUse && (
    <Button variant="default" component={Link} href="/firewall/new">
      Create ruleset
    </Button>
  );
  return (
    <Section
      title="Rulesets for some machines"
      actions={rulesets.data?.data.length !== 0 && create}
    >
      <DataTable
        label="Rulesets"
        query={rulesets}
        rows={rulesets.data?.data}
        columns={canUse ? [...columns, actions] : columns}
        skeletonRows={1}
        empty={
          <EmptyState title="No rulesets yet" art="shield" action={create}>
            A ruleset allows more traffic to the machines that are launched with it, e.g. HTTP to
            web servers only.
          </EmptyState>
        }
      />
      {canUse && location === '/firewall/new' && (
        <RulesetDialog ruleset={null} onSaved={refresh} onClose={() => navigate('/firewall')} />
      )}
      {edited && (
        <RulesetDialog ruleset={edited} onSaved={refresh} onClose={() => setEdited(null)} />
      )}
      {deletion.dialog}
    </Section>
  );
}

const columns: Column<Ruleset>[] = [
  { name: 'Name', value: ({ name }) => name, cell: ({ name }) => <NameCell name={name} /> },
  {
    name: 'Region',
    filter: true,
    value: ({ region }) => region.name,
    cell: ({ region }) => region.name,
  },
  {
    name: 'Allows',
    cell: ({ rules }) =>
      rules.map((rule) => toRuleText(rule as FirewallRule)).join('; ') || 'Nothing',
  },
  {
    name: 'Machines',
    isNumber: true,
    value: ({ instance_ids }) => instance_ids.length,
    cell: ({ instance_ids }) => instance_ids.length,
  },
];
