// Makes a key and shows it this once, together with code that uses it.

import {
  Alert,
  Button,
  Checkbox,
  Group,
  Modal,
  Select,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { ApiKey } from '#accounts/schema.ts';
import { post } from '../api.ts';
import { sampleQuestion, toChatCode } from '../code-samples/chat.ts';
import { CodeSamples } from '../components/code-samples.tsx';
import { SecretField } from '../components/copy-button.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { type Scope, scopeName } from '../current-user.ts';
import { toDefaultModel, useModels } from '../models/use-models.ts';
import { parseNewLimits } from './limits.ts';
import { LimitsFields } from './limits-fields.tsx';

interface DialogProps {
  onMade: () => void;
  onClose: () => void;
}

export function CreateApiKeyDialog({ onMade, onClose }: DialogProps) {
  const [made, setMade] = useState<ApiKey | null>(null);
  return (
    <Modal
      opened
      onClose={onClose}
      title={made ? 'Your new key' : 'Make an API key'}
      size={made ? 'xl' : 'md'}
      closeOnClickOutside={made === null}
    >
      {made?.key ? (
        <MadeKey made={made} secret={made.key} onClose={onClose} />
      ) : (
        <KeyForm
          onClose={onClose}
          onMade={(key) => {
            setMade(key);
            onMade();
          }}
        />
      )}
    </Modal>
  );
}

const scopeChoices: { value: Scope; label: string; description: string }[] = [
  { value: 'inference', label: scopeName.inference, description: 'Ask models at /v1.' },
  {
    value: 'cloud',
    label: scopeName.cloud,
    description: 'Manage machines and SSH keys at /api/v1.',
  },
];

const day = 86_400_000;
const expiries = [
  { value: 'never', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
  { value: 'date', label: 'On a date…' },
];

function KeyForm({ onMade, onClose }: { onMade: (key: ApiKey) => void; onClose: () => void }) {
  const [scopes, setScopes] = useState<string[]>(['inference', 'cloud']);
  const [expiry, setExpiry] = useState('never');
  const make = useMutation({
    mutationFn: (form: FormData) =>
      post<ApiKey>('/dashboard/api/api-keys', {
        label: form.get('label'),
        scopes,
        expires_at: toExpiry(expiry, form.get('date')),
        limits: parseNewLimits(form),
      }),
    onSuccess: onMade,
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    make.mutate(new FormData(event.currentTarget));
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label="Label"
          description="What it is for, e.g. the program that will use it."
          name="label"
          required
          maxLength={64}
          withAsterisk={false}
          data-autofocus
          autoComplete="off"
        />
        <Checkbox.Group label="May use" value={scopes} onChange={setScopes}>
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
          <TextInput
            label="Last day"
            name="date"
            type="date"
            required
            withAsterisk={false}
            min={new Date().toISOString().slice(0, 10)}
          />
        )}
        <LimitsFields />
        <ErrorNotice error={make.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={make.isPending} disabled={scopes.length === 0}>
            Make the key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** A last day lasts until it ends where the person is. */
function toExpiry(choice: string, date: FormDataEntryValue | null): string | null {
  if (choice === 'never') return null;
  if (choice === 'date') return new Date(`${String(date)}T23:59:59`).toISOString();
  return new Date(Date.now() + Number(choice) * day).toISOString();
}

function MadeKey(props: { made: ApiKey; secret: string; onClose: () => void }) {
  const { made, secret, onClose } = props;
  const models = useModels();
  const samples = toChatCode(
    window.location.origin,
    {
      model: toDefaultModel(models.data?.data),
      messages: [{ role: 'user', content: sampleQuestion }],
    },
    secret,
  );
  return (
    <Stack>
      <Alert variant="default">
        Copy it now and keep it safe: the server stores only a fingerprint and can’t show it again.
      </Alert>
      <SecretField label={made.label} value={secret} />
      {made.scopes.includes('inference') && (
        <>
          <Text size="sm" fw={500}>
            Try it
          </Text>
          <CodeSamples samples={samples} />
        </>
      )}
      <Group justify="flex-end">
        <Button onClick={onClose}>Done</Button>
      </Group>
    </Stack>
  );
}
