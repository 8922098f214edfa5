// The system prompt, sampling settings and output options. An empty field uses the model's default.

import { Button, NumberInput, SimpleGrid, Stack, Text, Textarea, TextInput } from '@mantine/core';
import {
  type Conversation,
  emptyConversation,
  emptySettings,
  type Settings,
} from './conversation.ts';
import { OutputForm } from './output-form.tsx';

type NumberName = Exclude<keyof Settings, 'stop'>;

interface Field {
  name: NumberName;
  label: string;
  min: number;
  max?: number;
  step: number;
}

/** The bounds of the API, which rejects values outside of them. */
const fields: Field[] = [
  { name: 'temperature', label: 'Temperature', min: 0, max: 2, step: 0.1 },
  { name: 'max_tokens', label: 'Max tokens', min: 1, step: 1 },
  { name: 'top_p', label: 'Top p', min: 0, max: 1, step: 0.05 },
  { name: 'top_k', label: 'Top k', min: -1, max: 1_000_000, step: 1 },
  { name: 'min_p', label: 'Min p', min: 0, max: 1, step: 0.05 },
  { name: 'seed', label: 'Seed', min: Number.MIN_SAFE_INTEGER, step: 1 },
  { name: 'frequency_penalty', label: 'Frequency penalty', min: -2, max: 2, step: 0.1 },
  { name: 'presence_penalty', label: 'Presence penalty', min: -2, max: 2, step: 0.1 },
  { name: 'repetition_penalty', label: 'Repetition penalty', min: 0.01, max: 10, step: 0.05 },
];

interface SettingsProps {
  conversation: Conversation;
  onChange: (change: Partial<Conversation>) => void;
}

export function SettingsForm({ conversation, onChange }: SettingsProps) {
  const { settings, system } = conversation;
  const set = (change: Partial<Settings>) => onChange({ settings: { ...settings, ...change } });
  return (
    <Stack gap="sm">
      <Textarea
        label="System prompt"
        description="Instructions for the model before the first message."
        value={system}
        onChange={(event) => onChange({ system: event.currentTarget.value })}
        autosize
        minRows={3}
        maxRows={10}
      />
      <Text size="xs" c="dimmed">
        Empty fields use the model’s defaults.
      </Text>
      <SimpleGrid cols={2} spacing="sm" className="settings-grid">
        {fields.map(({ name, label, step, ...bounds }) => (
          <NumberInput
            key={name}
            label={label}
            size="xs"
            value={settings[name] ?? ''}
            onChange={(value) => set({ [name]: typeof value === 'number' ? value : null })}
            allowDecimal={step < 1}
            step={step}
            {...bounds}
          />
        ))}
        <TextInput
          label="Stop sequence"
          size="xs"
          value={settings.stop ?? ''}
          onChange={(event) => set({ stop: event.currentTarget.value || null })}
        />
      </SimpleGrid>
      <OutputForm conversation={conversation} onChange={onChange} />
      <Button
        variant="default"
        size="xs"
        onClick={() => {
          const { tools, schema, logprobs, system: none } = emptyConversation;
          onChange({ settings: emptySettings, system: none, tools, schema, logprobs });
        }}
      >
        Reset
      </Button>
    </Stack>
  );
}
