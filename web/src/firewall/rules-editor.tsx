// Edits firewall rules, each as a row of fields. The focus goes to a new row, and from a removed one to the next.

import { ActionIcon, Button, Group, Select, Stack, Text } from '@mantine/core';
import IconX from '@tabler/icons-react/dist/esm/icons/IconX.mjs';
import { useRef } from 'react';
import { flushSync } from 'react-dom';
import { TextField } from '../components/fields.tsx';
import { newRule, type RuleFields } from './rules.ts';
import './firewall.css';

const protocols = ['tcp', 'udp', 'icmp', 'all'];
const maxRules = 20;

interface RulesEditorProps {
  rules: RuleFields[];
  onChange: (rules: RuleFields[]) => void;
}

export function RulesEditor({ rules, onChange }: RulesEditorProps) {
  const change = (id: string, fields: Partial<RuleFields>) =>
    onChange(rules.map((rule) => (rule.id === id ? { ...rule, ...fields } : rule)));
  const list = useRef<HTMLDivElement>(null);
  const focus = (selector: string) => list.current?.querySelector<HTMLElement>(selector)?.focus();
  function add() {
    flushSync(() => onChange([...rules, newRule()]));
    focus('fieldset:last-of-type input');
  }
  function remove(index: number) {
    const others = rules.toSpliced(index, 1);
    flushSync(() => onChange(others));
    focus(index < others.length ? `fieldset:nth-of-type(${index + 1}) > button` : '.add-rule');
  }
  return (
    <Stack gap="sm" ref={list}>
      {rules.length === 0 && <NoRules />}
      {rules.map((rule, index) => (
        <fieldset key={rule.id} className="rule">
          <legend className="visually-hidden">Rule {index + 1}</legend>
          <Select
            label="Protocol"
            data={protocols}
            value={rule.protocol}
            onChange={(value) => change(rule.id, { protocol: value as RuleFields['protocol'] })}
            allowDeselect={false}
          />
          <TextField
            name={`rules.${index}.port_range`}
            label="Ports"
            placeholder={rule.protocol === 'icmp' ? 'None' : '80, 80-90 or all'}
            disabled={rule.protocol === 'icmp'}
            value={rule.protocol === 'icmp' ? '' : rule.ports}
            onChange={(event) => change(rule.id, { ports: event.currentTarget.value })}
          />
          <TextField
            name={`rules.${index}.source_network`}
            label="Source"
            placeholder="203.0.113.0/24"
            value={rule.source}
            onChange={(event) => change(rule.id, { source: event.currentTarget.value })}
            required
          />
          <TextField
            name={`rules.${index}.description`}
            label="Description"
            value={rule.description}
            maxLength={128}
            onChange={(event) => change(rule.id, { description: event.currentTarget.value })}
          />
          <ActionIcon
            variant="default"
            size="input-sm"
            aria-label={`Remove rule ${index + 1}`}
            onClick={() => remove(index)}
          >
            <IconX size={16} aria-hidden />
          </ActionIcon>
        </fieldset>
      ))}
      <Group>
        <Button
          variant="default"
          size="xs"
          className="add-rule"
          disabled={rules.length >= maxRules}
          onClick={add}
        >
          Add rule
        </Button>
      </Group>
    </Stack>
  );
}

export const NoRules = () => <Text size="sm">No rules: all incoming traffic is blocked.</Text>;
