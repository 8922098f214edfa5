// Changes the user's own password.

import { Button, PasswordInput, Stack } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { post } from '../api.ts';
import { handleSubmit } from '../browser/form-data.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { useMe } from '../current-user.ts';
import { NewPasswordField } from '../sign-in/credential-fields.tsx';

export function PasswordForm() {
  const { email } = useMe();
  const client = useQueryClient();
  const form = useRef<HTMLFormElement>(null);
  const change = useMutation({
    mutationFn: (fields: FormData) =>
      post('/dashboard/api/password', {
        current_password: fields.get('current_password'),
        new_password: fields.get('new_password'),
      }),
    onSuccess() {
      form.current?.reset();
      notifications.show({ message: 'Password changed.' });
      return client.invalidateQueries({ queryKey: ['sessions'] });
    },
  });
  return (
    <form ref={form} onSubmit={handleSubmit(change.mutate)}>
      <Stack maw={360}>
        {/* Tells password managers which user the password belongs to. */}
        <input hidden name="username" autoComplete="username" readOnly value={email} />
        <PasswordInput
          label="Current password"
          name="current_password"
          autoComplete="current-password"
          required
        />
        <NewPasswordField label="New password" name="new_password" />
        <ErrorNotice error={change.error} />
        <Button type="submit" variant="default" loading={change.isPending}>
          Change password
        </Button>
      </Stack>
    </form>
  );
}
