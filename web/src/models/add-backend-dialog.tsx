// Adds a server that answers for a model, after looking whether it is there.

import {
  Alert,
  Autocomplete,
  Button,
  Group,
  Modal,
  PasswordInput,
  Select,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useRef, useState } from 'react';
import type { BackendCheck, BackendView } from '#inference/backends/schema.ts';
import { post } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { toDuration } from '../format/numbers.ts';
import { MoreFields, parseMore } from './backend-advanced-fields.tsx';
import { backendsKey, servers } from './backends.ts';

interface AddBackendProps {
  models: string[];
  /** The model to begin with. */
  wanted: string | null;
  onClose: () => void;
}

export function AddBackendDialog({ models, wanted, onClose }: AddBackendProps) {
  const client = useQueryClient();
  const form = useRef<HTMLFormElement>(null);
  const [model, setModel] = useState(wanted);
  const [server, setServer] = useState<string | null>(null);
  const read = () => toNewBackend(new FormData(form.current ?? undefined), model, server);
  const check = useMutation({
    mutationFn: () => post<BackendCheck>('/dashboard/api/backends/check', read()),
  });
  const add = useMutation({
    mutationFn: () => post<BackendView>('/dashboard/api/backends', read()),
    async onSuccess({ name, model: served }) {
      await client.invalidateQueries({ queryKey: backendsKey });
      notifications.show({ message: `“${name}” now answers for ${served}.` });
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    add.mutate();
  };
  const look = () => form.current?.reportValidity() && check.mutate();
  return (
    <Modal opened onClose={onClose} title="Add a backend" size="lg">
      <form onSubmit={submit} ref={form}>
        <Stack>
          <Text size="sm" c="dimmed">
            Any server that speaks the OpenAI API, e.g. vLLM or SGLang. Several for one model share
            its work.
          </Text>
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
            <Select
              label="Model"
              description="The id that it will answer for."
              placeholder="Choose one"
              data={models}
              value={model}
              onChange={setModel}
              allowDeselect={false}
              searchable
            />
            <Field name="name" label="Name" description="Yours, e.g. gpu-box-1." required />
          </SimpleGrid>
          <Field
            name="url"
            label="Address"
            description="With the path that stands before /chat/completions."
            placeholder="http://10.0.0.5:8000/v1"
            type="url"
            required
          />
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
            <PasswordInput
              label="API key"
              description="Kept by the server and never shown again."
              name="api_key"
              placeholder="None"
              autoComplete="off"
              visibilityToggleButtonProps={{ 'aria-label': 'Show the API key' }}
            />
            <Autocomplete
              label="Its name for the model"
              description="If it calls the model something else."
              name="upstream_model"
              placeholder={model ?? 'The same'}
              data={check.data?.models ?? []}
              autoComplete="off"
            />
            <Select
              label="Kind of server"
              description="Some have their own ways to be used."
              placeholder="Any OpenAI-compatible one"
              data={servers}
              value={server}
              onChange={setServer}
              clearable
              clearButtonProps={{ 'aria-label': 'Any kind' }}
            />
            <Field
              name="concurrency"
              label="Requests at once"
              description="More wait for their turn."
              placeholder="No limit"
              type="number"
              min={1}
              step={1}
            />
            <Field
              name="weight"
              label="Weight"
              description="Twice the weight gets twice the work."
              placeholder="1"
              type="number"
              min={0.01}
              step="any"
            />
          </SimpleGrid>
          <MoreFields />
          {check.data && <CheckResult check={check.data} />}
          <ErrorNotice error={check.error ?? add.error} />
          <Group justify="space-between">
            <Button
              variant="default"
              onClick={look}
              loading={check.isPending}
              disabled={model === null}
            >
              Check it
            </Button>
            <Group>
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button type="submit" loading={add.isPending} disabled={model === null}>
                Add
              </Button>
            </Group>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

const Field = (props: Parameters<typeof TextInput>[0]) => (
  <TextInput withAsterisk={false} autoComplete="off" {...props} />
);

const CheckResult = ({ check }: { check: BackendCheck }) => (
  <Alert variant="default" role="status">
    <Stack gap={6} align="flex-start">
      <StatusBadge tone={check.ok ? 'good' : 'bad'}>
        {check.ok ? `reached in ${toDuration(check.latency_ms)}` : 'no use of it'}
      </StatusBadge>
      <Text size="sm" className="breakable">
        {check.message}
      </Text>
      {check.models.length > 0 && (
        <Text size="sm" c="dimmed" className="breakable">
          It has {check.models.join(', ')}.
        </Text>
      )}
    </Stack>
  </Alert>
);

function toNewBackend(form: FormData, model: string | null, server: string | null) {
  const text = (name: string) => String(form.get(name) ?? '').trim();
  const optional = Object.entries({
    api_key: text('api_key'),
    upstream_model: text('upstream_model'),
    server,
    weight: text('weight') && Number(text('weight')),
    concurrency: text('concurrency') && Number(text('concurrency')),
  }).filter(([, value]) => value !== '' && value !== null);
  const required = { model, name: text('name'), url: text('url') };
  return { ...required, ...Object.fromEntries(optional), ...parseMore(form) };
}
