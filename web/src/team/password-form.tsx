// Changing one's own password.

import { Button, PasswordInput, Stack } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useRef } from 'react';
import { post } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { useMe } from '../current-user.ts';

export function PasswordForm() {
  const { email } = useMe();
  const client = useQueryClient();
  const form = useRef<HTMLFormElement>(null);
  const change = useMutation({
    mutationFn: (fields: FormData) => post('/dashboard/api/password', Object.fromEntries(fields)),
    onSuccess() {
      form.current?.reset();
      notifications.show({ message: 'Your password is changed.' });
      return client.invalidateQueries({ queryKey: ['sessions'] });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    fields.delete('username');
    change.mutate(fields);
  };
  return (
    <form ref={form} onSubmit={submit}>
      <Stack maw={360}>
        {/* Tells password managers whose password this is. */}
        <input hidden name="username" autoComplete="username" readOnly value={email} />
        <PasswordInput
          label="Current password"
          name="current_password"
          autoComplete="current-password"
          required
          withAsterisk={false}
        />
        <PasswordInput
          label="New password"
          description="At least 10 characters."
          name="new_password"
          autoComplete="new-password"
          minLength={10}
          maxLength={1024}
          required
          withAsterisk={false}
        />
        <ErrorNotice error={change.error} />
        <Button type="submit" variant="default" loading={change.isPending}>
          Change the password
        </Button>
      </Stack>
    </form>
  );
}
