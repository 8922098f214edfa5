// Edits firewall rules, each as a row of fields.

import { ActionIcon, Button, Group, Select, Stack, Text } from '@mantine/core';
import IconX from '@tabler/icons-react/dist/esm/icons/IconX.mjs';
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
  return (
    <Stack gap="sm">
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
            placeholder={rule.protocol === 'icmp' ? 'None' : 'All, or e.g. 80-90'}
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
            size="lg"
            aria-label={`Remove rule ${index + 1}`}
            onClick={() => onChange(rules.filter(({ id }) => id !== rule.id))}
          >
            <IconX size={16} aria-hidden />
          </ActionIcon>
        </fieldset>
      ))}
      <Group>
        <Button
          variant="default"
          size="xs"
          disabled={rules.length >= maxRules}
          onClick={() => onChange([...rules, newRule()])}
        >
          Add rule
        </Button>
      </Group>
    </Stack>
  );
}

export const NoRules = () => <Text size="sm">No rules: all incoming traffic is blocked.</Text>;
