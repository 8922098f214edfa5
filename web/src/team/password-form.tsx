// Changes the user's own password.

import { Button, Group } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../api.ts';
import { PasswordField } from '../components/fields.tsx';
import { Form } from '../components/form.tsx';
import { useMe } from '../current-user.ts';
import { NewPasswordField } from '../sign-in/credential-fields.tsx';

export function PasswordForm() {
  const { email } = useMe();
  const client = useQueryClient();
  /** A new form is empty. */
  const [changes, setChanges] = useState(0);
  const change = useMutation({
    mutationFn: (fields: FormData) =>
      post('/dashboard/api/password', {
        current_password: fields.get('current_password'),
        new_password: fields.get('new_password'),
      }),
    onSuccess() {
      setChanges((count) => count + 1);
      notifications.show({ message: 'Password changed.' });
      return client.invalidateQueries({ queryKey: ['sessions'] });
    },
  });
  return (
    <Form
      key={changes}
      maw={360}
      onSubmit={change.mutate}
      error={change.error}
      actions={
        <Group>
          <Button type="submit" variant="default" loading={change.isPending}>
            Change password
          </Button>
        </Group>
      }
    >
      {/* Tells password managers which user the password belongs to. */}
      <input hidden name="username" autoComplete="username" readOnly value={email} />
      <PasswordField
        label="Current password"
        name="current_password"
        autoComplete="current-password"
        required
      />
      <NewPasswordField label="New password" name="new_password" />
    </Form>
  );
}
