// The sign-in form. It replaces any page until the user has signed in.

import { Button, PasswordInput, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { post } from '../api.ts';
import { handleSubmit } from '../browser/form-data.ts';
import { AuthLayout } from '../components/auth-layout.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { meKey } from '../current-user.ts';
import { EmailField } from './credential-fields.tsx';

export function SignIn() {
  const client = useQueryClient();
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
    <AuthLayout title="Sign in">
      <form onSubmit={handleSubmit(signIn.mutate)}>
        <Stack>
          <EmailField />
          <PasswordInput
            label="Password"
            name="password"
            autoComplete="current-password"
            required
          />
          <ErrorNotice error={signIn.error} />
          <Button type="submit" loading={signIn.isPending}>
            Sign in
          </Button>
          <Text size="sm" className="muted">
            New here? Open the set-up link that the server printed when it started, or an invitation
            link from an owner.
          </Text>
          <Text size="sm" className="muted">
            Forgot your password? The operator of this server can give you a link to set a new one.
          </Text>
        </Stack>
      </form>
    </AuthLayout>
  );
}
