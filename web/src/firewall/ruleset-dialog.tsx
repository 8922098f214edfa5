// Makes or changes a ruleset.

import { Button, Group, Modal, Select, SimpleGrid, Stack, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { FirewallRule, Ruleset } from '#cloud/schema.ts';
import { patch, post } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { useRegions } from '../regions.ts';
import { newRule, parseRule, toFields } from './rules.ts';
import { RulesEditor } from './rules-editor.tsx';

interface RulesetDialogProps {
  /** Null to make one. */
  ruleset: Ruleset | null;
  onSaved: () => void;
  onClose: () => void;
}

export function RulesetDialog({ ruleset, onSaved, onClose }: RulesetDialogProps) {
  const regions = useRegions();
  const [name, setName] = useState(ruleset?.name ?? '');
  const [chosen, setChosen] = useState(ruleset?.region.name ?? null);
  const [rules, setRules] = useState(
    () => ruleset?.rules.map((rule) => toFields(rule as FirewallRule)) ?? [newRule()],
  );
  const region = chosen ?? regions.home;
  const save = useMutation({
    mutationFn: async () => {
      const body = { name: name.trim(), rules: rules.map(parseRule) };
      if (ruleset) await patch(`/api/v1/firewall-rulesets/${ruleset.id}`, body);
      else await post('/api/v1/firewall-rulesets', { ...body, region });
    },
    onSuccess() {
      onSaved();
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    save.mutate();
  };
  const title = ruleset ? `Change “${ruleset.name}”` : 'Make a ruleset';
  return (
    <Modal opened onClose={onClose} title={title} size="xl">
      <form onSubmit={submit}>
        <Stack>
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput
              label="Name"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              required
              maxLength={64}
              withAsterisk={false}
              autoComplete="off"
              data-autofocus
            />
            <Select
              label="Region"
              data={regions.choices}
              value={region}
              onChange={setChosen}
              disabled={ruleset !== null}
              allowDeselect={false}
            />
          </SimpleGrid>
          <RulesEditor rules={rules} onChange={setRules} />
          <ErrorNotice error={save.error ?? regions.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={save.isPending} disabled={region === null}>
              {ruleset ? 'Save the ruleset' : 'Make it'}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
