// Presets: applies settings that were saved under a name, saves the current ones, and deletes.

import { Button, Group, Menu, Text } from '@mantine/core';
import IconTrash from '@tabler/icons-react/dist/esm/icons/IconTrash.mjs';
import { useState } from 'react';
import type { Preset } from '#accounts/conversations/schema.ts';
import { toFieldText } from '../browser/form-data.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import type { ChatSettings } from './conversation.ts';
import { usePresets } from './library.ts';

interface PresetPickerProps {
  settings: ChatSettings;
  onApply: (settings: ChatSettings) => void;
}

export function PresetPicker({ settings, onApply }: PresetPickerProps) {
  const { presets, save, remove } = usePresets();
  const [saving, setSaving] = useState(false);
  const [deleting, setDeleting] = useState<Preset | null>(null);
  const list = presets.data?.data ?? [];
  const { system, settings: sampling, tools, schema, logprobs } = settings;
  const current = { system, settings: sampling, tools, schema, logprobs };
  return (
    <>
      <Group gap="xs">
        <Menu position="bottom-start" width={240}>
          <Menu.Target>
            <Button variant="default" size="xs">
              Presets
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {list.length === 0 && (
              <Text size="xs" c="dimmed" px="sm" py={6}>
                No presets yet. Save the settings below to use them again.
              </Text>
            )}
            {list.map((preset) => (
              <Menu.Item key={preset.id} onClick={() => onApply(preset.settings)}>
                {preset.name}
              </Menu.Item>
            ))}
            {list.length > 0 && <Menu.Divider />}
            {list.map((preset) => (
              <Menu.Item
                key={preset.id}
                leftSection={<IconTrash size={15} aria-hidden />}
                onClick={() => setDeleting(preset)}
              >
                Delete {preset.name}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
        <Button variant="default" size="xs" onClick={() => setSaving(true)}>
          Save as preset
        </Button>
      </Group>
      {saving && (
        <FormDialog
          title="Save as preset"
          action="Save"
          onSubmit={async (form) => {
            await save(toFieldText(form, 'name'), current);
            setSaving(false);
          }}
          onClose={() => setSaving(false)}
        >
          <TextField
            name="name"
            label="Name"
            description="A preset of the same name is replaced."
            maxLength={100}
            required
            data-autofocus
          />
        </FormDialog>
      )}
      {deleting && (
        <ConfirmDialog
          title={`Delete ${deleting.name}`}
          action="Delete"
          onConfirm={() => remove(deleting.id)}
          onClose={() => setDeleting(null)}
        >
          The preset is deleted for good. Conversations that used it keep their settings.
        </ConfirmDialog>
      )}
    </>
  );
}
