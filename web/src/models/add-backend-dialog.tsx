// Adds a backend to a model once a check has passed, or if the user adds it anyway.

import { Alert, Button, SimpleGrid, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type MouseEvent, useState } from 'react';
import type { BackendCheck, BackendView } from '#inference/backends/schema.ts';
import { toDuration } from '#lib/text/format.ts';
import { post } from '../api.ts';
import { toFieldText } from '../browser/form-data.ts';
import { AutocompleteField, PasswordField, SelectField, TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { AdvancedFields, parseAdvancedFields } from './backend-advanced-fields.tsx';
import { backendsKey, backendsPath, serverTypes } from './backends.ts';
import { ModelSelect } from './model-select.tsx';

interface AddBackendDialogProps {
  models: string[];
  /** The model that is selected at first; null for none. */
  initialModel: string | null;
  onClose: () => void;
}

export function AddBackendDialog({ models, initialModel, onClose }: AddBackendDialogProps) {
  const client = useQueryClient();
  const [model, setModel] = useState(initialModel);
  /** The backend whose check failed, which the next click adds anyway. */
  const [failed, setFailed] = useState<string | null>(null);
  const [server, setServer] = useState<string | null>(null);
  const check = useMutation({
    mutationFn: (form: FormData) =>
      post<BackendCheck>(`${backendsPath}/check`, toNewBackend(form, model, server)),
  });
  async function add(form: FormData) {
    const backend = toNewBackend(form, model, server);
    const text = JSON.stringify(backend);
    if (text !== failed && !(await check.mutateAsync(form)).ok) {
      setFailed(text);
      throw new Error(
        'The backend was not added, because the check failed. To add it anyway, press “Add backend” again.',
      );
    }
    const added = await post<BackendView>(backendsPath, backend);
    await client.invalidateQueries({ queryKey: backendsKey });
    notifications.show({ message: `“${added.name}” now serves ${added.model}.` });
    onClose();
  }
  const startCheck = ({ currentTarget: { form } }: MouseEvent<HTMLButtonElement>) => {
    if (form?.reportValidity()) check.mutate(new FormData(form));
  };
  return (
    <FormDialog
      title="Add backend"
      action="Add backend"
      size="lg"
      disabled={model === null}
      error={check.error}
      secondaryAction={
        <Button
          variant="default"
          mr="auto"
          onClick={startCheck}
          loading={check.isPending}
          disabled={model === null}
        >
          Check backend
        </Button>
      }
      onSubmit={add}
      onClose={onClose}
    >
      <Text size="sm" c="dimmed">
        Any server with an OpenAI-compatible API, e.g. vLLM or SGLang. Several backends of one model
        share its load.
      </Text>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <ModelSelect
          description="The model ID to serve."
          models={models}
          value={model}
          onChange={setModel}
        />
        <TextField
          name="name"
          label="Name"
          description="Your name for it, e.g. gpu-box-1."
          required
        />
      </SimpleGrid>
      <TextField
        name="url"
        label="Base URL"
        description="Includes the path before /chat/completions."
        placeholder="http://10.0.0.5:8000/v1"
        type="url"
        required
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <PasswordField
          label="API key"
          description="Stored by the server, never shown again."
          name="api_key"
          placeholder="None"
          visibilityToggleButtonProps={{ 'aria-label': 'Show the API key' }}
        />
        <AutocompleteField
          label="Upstream model name"
          description="If the backend uses another name."
          name="upstream_model"
          placeholder={model ?? 'Same as the model ID'}
          data={check.data?.models ?? []}
          autoComplete="off"
        />
        <SelectField
          name="server"
          label="Server type"
          description="Some types need specific handling."
          placeholder="Any OpenAI-compatible server"
          data={serverTypes}
          value={server}
          onChange={setServer}
          clearable
          clearButtonProps={{ 'aria-label': 'Clear the server type' }}
        />
        <TextField
          name="concurrency"
          label="Concurrent requests"
          description="Further requests wait in a queue."
          placeholder="No limit"
          type="number"
          min={1}
          step={1}
        />
        <TextField
          name="weight"
          label="Weight"
          description="Twice the weight gets twice the load."
          placeholder="1"
          type="number"
          min={0.01}
          step="any"
        />
      </SimpleGrid>
      <AdvancedFields />
      {check.data && <CheckResult check={check.data} />}
    </FormDialog>
  );
}

const CheckResult = ({ check }: { check: BackendCheck }) => (
  <Alert variant="default" role="status">
    <Stack gap={6} align="flex-start">
      <StatusBadge tone={check.ok ? 'good' : 'bad'}>
        {check.ok ? `passed in ${toDuration(check.latency_ms)}` : 'check failed'}
      </StatusBadge>
      <Text size="sm" className="breakable">
        {check.message}
      </Text>
      {check.models.length > 0 && (
        <Text size="sm" c="dimmed" className="breakable">
          Available models: {check.models.join(', ')}.
        </Text>
      )}
    </Stack>
  </Alert>
);

function toNewBackend(form: FormData, model: string | null, server: string | null) {
  const text = (name: string) => toFieldText(form, name);
  const optional = Object.entries({
    api_key: text('api_key'),
    upstream_model: text('upstream_model'),
    server,
    weight: text('weight') && Number(text('weight')),
    concurrency: text('concurrency') && Number(text('concurrency')),
  }).filter(([, value]) => value !== '' && value !== null);
  const required = { model, name: text('name'), url: text('url') };
  return { ...required, ...Object.fromEntries(optional), ...parseAdvancedFields(form) };
}
