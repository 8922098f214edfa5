// The system prompt, sampling settings and output options. An empty field uses the model's default.

import { Button, NumberInput, SimpleGrid, Stack, Text, Textarea, TextInput } from '@mantine/core';
import type { Sampling } from '#accounts/conversations/schema.ts';
import { type ChatSettings, emptySettings } from './conversation.ts';
import { OutputForm } from './output-form.tsx';
import { PresetPicker } from './presets.tsx';
import { findSettingError, settingFields } from './setting-fields.ts';

interface SettingsProps {
  chat: ChatSettings;
  onChange: (change: Partial<ChatSettings>) => void;
}

export function SettingsForm({ chat, onChange }: SettingsProps) {
  const { settings, system } = chat;
  const set = (change: Partial<Sampling>) => onChange({ settings: { ...settings, ...change } });
  return (
    <Stack gap="sm">
      <PresetPicker settings={chat} onApply={onChange} />
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
      <SimpleGrid cols={2} spacing="sm" className="align-end">
        {settingFields.map((field) => (
          <NumberInput
            key={field.name}
            label={field.label}
            size="xs"
            value={settings[field.name] ?? ''}
            onChange={(value) => set({ [field.name]: typeof value === 'number' ? value : null })}
            error={findSettingError(field, settings[field.name])}
            allowDecimal={field.step < 1}
            step={field.step}
            // Typed numbers are never changed; the arrows stay within the bounds.
            clampBehavior="none"
            min={field.min ?? Number.MIN_SAFE_INTEGER}
            max={field.max ?? Number.MAX_SAFE_INTEGER}
          />
        ))}
        <TextInput
          label="Stop sequence"
          size="xs"
          value={settings.stop ?? ''}
          onChange={(event) => set({ stop: event.currentTarget.value || null })}
        />
      </SimpleGrid>
      <OutputForm settings={chat} onChange={onChange} />
      <Button variant="default" size="xs" onClick={() => onChange(emptySettings)}>
        Reset
      </Button>
    </Stack>
  );
}
