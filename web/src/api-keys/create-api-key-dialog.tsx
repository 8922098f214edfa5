// Creates an API key and shows it once, with code that uses it.

import { Alert, Button, Checkbox, Group, Select, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { ApiKey } from '#accounts/schema.ts';
import { post } from '../api.ts';
import { sampleQuestion, toChatCode } from '../code-samples/chat.ts';
import { CodeSamples } from '../components/code-samples.tsx';
import { SecretField } from '../components/copy-button.tsx';
import { TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { GuardedModal, unsavedSecret } from '../components/leave-guard.tsx';
import { type Scope, scopeName } from '../current-user.ts';
import { toDefaultModel, useChatModels } from '../models/use-models.ts';
import { parseNewLimits } from './limits.ts';
import { LimitsFields } from './limits-fields.tsx';

interface CreateApiKeyDialogProps {
  onCreated: () => void;
  onClose: () => void;
}

const scopeChoices: { value: Scope; label: string; description: string }[] = [
  {
    value: 'inference',
    label: scopeName.inference,
    description: 'Send requests to models at /v1.',
  },
  {
    value: 'cloud',
    label: scopeName.cloud,
    description: 'Manage machines and SSH keys at /api/v1.',
  },
];

const dayMs = 86_400_000;
const expiries = [
  { value: 'never', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In 1 year' },
  { value: 'date', label: 'Custom date…' },
];

export function CreateApiKeyDialog({ onCreated, onClose }: CreateApiKeyDialogProps) {
  const [created, setCreated] = useState<ApiKey | null>(null);
  const [scopes, setScopes] = useState<string[]>(['inference', 'cloud']);
  const [expiry, setExpiry] = useState('never');
  async function create(form: FormData) {
    const key = await post<ApiKey>('/dashboard/api/api-keys', {
      label: form.get('label'),
      scopes,
      expires_at: toExpiry(expiry, form.get('expires_at')),
      limits: parseNewLimits(form),
    });
    setCreated(key);
    onCreated();
  }
  if (created?.key) return <CreatedKey created={created} secret={created.key} onClose={onClose} />;
  return (
    <FormDialog
      title="Create API key"
      action="Create API key"
      disabled={scopes.length === 0}
      onSubmit={create}
      onClose={onClose}
    >
      <TextField
        label="Label"
        description="What the key is for, e.g. the program that will use it."
        name="label"
        required
        maxLength={64}
        data-autofocus
      />
      <Checkbox.Group label="Access" value={scopes} onChange={setScopes}>
        <Stack gap="xs" mt={6}>
          {scopeChoices.map((choice) => (
            <Checkbox key={choice.value} {...choice} />
          ))}
        </Stack>
      </Checkbox.Group>
      <Select
        label="Expires"
        data={expiries}
        value={expiry}
        onChange={(value) => setExpiry(value ?? 'never')}
        allowDeselect={false}
      />
      {expiry === 'date' && (
        <TextField
          label="Valid through"
          name="expires_at"
          type="date"
          required
          min={new Date().toISOString().slice(0, 10)}
        />
      )}
      <LimitsFields />
    </FormDialog>
  );
}

/** A custom date is valid until its end in the user's time zone. */
function toExpiry(choice: string, date: FormDataEntryValue | null): string | null {
  if (choice === 'never') return null;
  if (choice === 'date') return new Date(`${String(date)}T23:59:59`).toISOString();
  return new Date(Date.now() + Number(choice) * dayMs).toISOString();
}

interface CreatedKeyProps {
  created: ApiKey;
  secret: string;
  onClose: () => void;
}

function CreatedKey({ created, secret, onClose }: CreatedKeyProps) {
  const chats = useChatModels();
  const samples = toChatCode(
    window.location.origin,
    {
      model: toDefaultModel(chats.ids),
      messages: [{ role: 'user', content: sampleQuestion }],
    },
    secret,
  );
  return (
    <GuardedModal
      guard={unsavedSecret('API key')}
      onClose={onClose}
      title="Your new API key"
      size="xl"
      closeOnClickOutside={false}
    >
      {(_, close) => (
        <Stack>
          <Alert variant="default">
            Copy the key now and store it safely. The server keeps only a hash of it and can’t show
            it again.
          </Alert>
          <SecretField label={created.label} value={secret} />
          {created.scopes.includes('inference') && (
            <>
              <Text size="sm" fw={500}>
                Try it
              </Text>
              <CodeSamples samples={samples} />
            </>
          )}
          <Group justify="flex-end">
            <Button onClick={close}>I saved the key</Button>
          </Group>
        </Stack>
      )}
    </GuardedModal>
  );
}
