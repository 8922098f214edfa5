// Signing in. Stands in for any page until somebody has.

import { Button, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { FormEvent } from 'react';
import { post } from '../api.ts';
import { AuthLayout } from '../components/auth-layout.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { meKey } from '../current-user.ts';

export function SignIn() {
  const client = useQueryClient();
  const login = useMutation({
    mutationFn: (form: FormData) =>
      post('/dashboard/api/login', { email: form.get('email'), password: form.get('password') }),
    onSuccess() {
      // Whoever was here before may have been somebody else.
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== meKey[0] });
      return client.invalidateQueries({ queryKey: meKey });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    login.mutate(new FormData(event.currentTarget));
  };
  return (
    <AuthLayout title="Sign in">
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            label="E-mail"
            name="email"
            type="email"
            autoComplete="username"
            required
            withAsterisk={false}
          />
          <PasswordInput
            label="Password"
            name="password"
            autoComplete="current-password"
            required
            withAsterisk={false}
          />
          <ErrorNotice error={login.error} />
          <Button type="submit" loading={login.isPending}>
            Sign in
          </Button>
        </Stack>
      </form>
    </AuthLayout>
  );
}
