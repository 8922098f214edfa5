// The sign-in form. It replaces any page until the user has signed in.

import { Button, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../api.ts';
import { AuthLayout } from '../components/auth-layout.tsx';
import { PasswordField } from '../components/fields.tsx';
import { Form } from '../components/form.tsx';
import { hasSessionEnded, meKey } from '../current-user.ts';
import { EmailField } from './credential-fields.tsx';

export function SignIn() {
  const client = useQueryClient();
  const [hasEnded] = useState(() => hasSessionEnded(client));
  const signIn = useMutation({
    mutationFn: (form: FormData) =>
      post('/dashboard/api/login', { email: form.get('email'), password: form.get('password') }),
    onSuccess() {
      // Cached data may belong to another user.
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== meKey[0] });
      return client.invalidateQueries({ queryKey: meKey });
    },
  });
  return (
    <AuthLayout
      title="Sign in"
      {...(hasEnded && {
        description: 'Your session has ended. Sign in to return to the page where you were.',
      })}
    >
      <Form
        onSubmit={signIn.mutate}
        error={signIn.error}
        actions={
          <Button type="submit" loading={signIn.isPending}>
            Sign in
          </Button>
        }
      >
        <EmailField />
        <PasswordField label="Password" name="password" autoComplete="current-password" required />
      </Form>
      <Text size="sm" className="muted">
        New here? Open the set-up link that the server printed when it started, or an invitation
        link from an owner.
      </Text>
      <Text size="sm" className="muted">
        Forgot your password? The operator of this server can give you a link to set a new one.
      </Text>
    </AuthLayout>
  );
}
