// Edits the limits of a key or of the whole account. A change applies from the next request on.

import { Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import type { ApiKey, Limits } from '#accounts/schema.ts';
import { patch, put } from '../api.ts';
import { TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { apiKeysKey } from '../queries.ts';
import { accountLimitsKey, accountLimitsPath, parseLimits } from './limits.ts';
import { LimitsFields } from './limits-fields.tsx';

export function EditKeyDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const client = useQueryClient();
  async function save(form: FormData) {
    const limits = parseLimits(form);
    await patch(`/dashboard/api/api-keys/${apiKey.id}`, { label: form.get('label'), limits });
    await client.invalidateQueries({ queryKey: apiKeysKey });
    onClose();
  }
  return (
    <FormDialog title={`Edit “${apiKey.label}”`} action="Save" onSubmit={save} onClose={onClose}>
      <TextField
        label="Label"
        name="label"
        required
        maxLength={64}
        defaultValue={apiKey.label}
        data-autofocus
      />
      <LimitsFields limits={apiKey.limits} />
    </FormDialog>
  );
}

export function AccountLimitsDialog({ limits, onClose }: { limits: Limits; onClose: () => void }) {
  const client = useQueryClient();
  async function save(form: FormData) {
    await put(accountLimitsPath, parseLimits(form));
    await client.invalidateQueries({ queryKey: accountLimitsKey });
    onClose();
  }
  return (
    <FormDialog title="Account limits" action="Save" onSubmit={save} onClose={onClose}>
      <Text size="sm">
        These limits apply to all keys and users together, whatever the limits of each key.
      </Text>
      <LimitsFields limits={limits} />
    </FormDialog>
  );
}
