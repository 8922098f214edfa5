// Creates or edits a ruleset.

import { SimpleGrid } from '@mantine/core';
import { useState } from 'react';
import type { FirewallRule, Ruleset } from '#cloud/schema.ts';
import { patch, post } from '../api.ts';
import { toFieldText } from '../browser/form-data.ts';
import { TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { useRegionSelect } from '../components/use-region-select.tsx';
import { newRule, parseRule, toFields } from './rules.ts';
import { RulesEditor } from './rules-editor.tsx';

interface RulesetDialogProps {
  /** Null to create one. */
  ruleset: Ruleset | null;
  onSaved: () => void;
  onClose: () => void;
}

export function RulesetDialog({ ruleset, onSaved, onClose }: RulesetDialogProps) {
  const { region, field, error } = useRegionSelect({ fixed: ruleset?.region.name });
  const [rules, setRules] = useState(
    () => ruleset?.rules.map((rule) => toFields(rule as FirewallRule)) ?? [newRule()],
  );
  async function save(form: FormData) {
    const body = { name: toFieldText(form, 'name'), rules: rules.map(parseRule) };
    if (ruleset) await patch(`/api/v1/firewall-rulesets/${ruleset.id}`, body);
    else await post('/api/v1/firewall-rulesets', { ...body, region });
    onSaved();
    onClose();
  }
  return (
    <FormDialog
      title={ruleset ? `Edit “${ruleset.name}”` : 'Create ruleset'}
      action={ruleset ? 'Save' : 'Create ruleset'}
      size="xl"
      disabled={region === null}
      error={error}
      onSubmit={save}
      onClose={onClose}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextField
          label="Name"
          name="name"
          defaultValue={ruleset?.name ?? ''}
          required
          maxLength={64}
          data-autofocus
        />
        {field}
      </SimpleGrid>
      <RulesEditor rules={rules} onChange={setRules} />
    </FormDialog>
  );
}
