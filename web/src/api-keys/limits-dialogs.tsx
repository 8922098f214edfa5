// Changes what a key, or the whole account, may use. A change counts from the next request on.

import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { FormEvent, ReactNode } from 'react';
import type { ApiKey, Limits } from '#accounts/schema.ts';
import { patch, put } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { accountLimitsKey, parseLimits } from './limits.ts';
import { LimitsFields } from './limits-fields.tsx';

export function EditKeyDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const save = (form: FormData) =>
    patch(`/dashboard/api/api-keys/${apiKey.id}`, {
      label: form.get('label'),
      limits: parseLimits(form),
    });
  return (
    <EditDialog
      title={`Edit “${apiKey.label}”`}
      limits={apiKey.limits}
      queryKey={['api-keys']}
      onSave={save}
      onClose={onClose}
    >
      <TextInput
        label="Label"
        name="label"
        required
        maxLength={64}
        withAsterisk={false}
        defaultValue={apiKey.label}
        autoComplete="off"
        data-autofocus
      />
    </EditDialog>
  );
}

export function AccountLimitsDialog({ limits, onClose }: { limits: Limits; onClose: () => void }) {
  return (
    <EditDialog
      title="Limits of the account"
      limits={limits}
      queryKey={accountLimitsKey}
      onSave={(form) => put('/dashboard/api/limits', parseLimits(form))}
      onClose={onClose}
    >
      <Text size="sm">
        All keys and people together stay within these, whatever limits single keys have.
      </Text>
    </EditDialog>
  );
}

interface EditDialogProps {
  title: string;
  limits: Limits;
  queryKey: string[];
  onSave: (form: FormData) => Promise<unknown>;
  onClose: () => void;
  children: ReactNode;
}

function EditDialog({ title, limits, queryKey, onSave, onClose, children }: EditDialogProps) {
  const client = useQueryClient();
  const save = useMutation({
    async mutationFn(form: FormData) {
      await onSave(form);
      await client.invalidateQueries({ queryKey });
    },
    onSuccess: onClose,
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    save.mutate(new FormData(event.currentTarget));
  };
  return (
    <Modal opened onClose={onClose} title={title}>
      <form onSubmit={submit}>
        <Stack>
          {children}
          <LimitsFields limits={limits} />
          <ErrorNotice error={save.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={save.isPending}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
