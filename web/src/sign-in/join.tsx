// Where the set-up link and invitations lead: says what the link is for, takes e-mail and password.

import { Anchor, Button, PasswordInput, Skeleton, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { FormEvent } from 'react';
import { Link, useLocation } from 'wouter';
import { ApiError, post } from '../api.ts';
import { AuthLayout } from '../components/auth-layout.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { meKey, type Role, roleMeaning, useMeQuery } from '../current-user.ts';

interface Invited {
  role: Role;
  account: string;
  setup: boolean;
}

export function Join({ token }: { token: string }) {
  const me = useMeQuery();
  const look = useQuery({
    queryKey: ['invitation', token],
    queryFn: () => post<Invited>('/dashboard/api/invitations/look', { token }),
    staleTime: Number.POSITIVE_INFINITY,
  });

  if (look.isPending) {
    return (
      <AuthLayout title="Join">
        <Skeleton h={220} />
      </AuthLayout>
    );
  }
  if (look.isError) {
    const dead = look.error instanceof ApiError && look.error.status === 404;
    return (
      <AuthLayout title={dead ? 'This link no longer works' : 'This link could not be checked'}>
        {dead ? (
          <Text>
            Links work once and expire. Ask an owner for a new one. If this is the set-up link of a
            new server, start the server again: it prints a fresh one until somebody has joined.
          </Text>
        ) : (
          <ErrorNotice error={look.error} onRetry={() => look.refetch()} />
        )}
        <Anchor component={Link} href="/">
          {me.data ? 'Go to the dashboard' : 'Sign in'}
        </Anchor>
      </AuthLayout>
    );
  }

  const { setup, role } = look.data;
  return (
    <AuthLayout
      title={setup ? 'Set up Millrace' : `Join as ${role}`}
      text={
        setup
          ? 'You are the first here. Choose how you sign in; you will be the owner of this server.'
          : `You were invited. Your role, ${role}: ${roleMeaning[role]}.`
      }
    >
      {me.data && (
        <Text size="sm">
          You are signed in as {me.data.email}. Going on makes another person and signs you in as
          them.
        </Text>
      )}
      <JoinForm token={token} />
    </AuthLayout>
  );
}

function JoinForm({ token }: { token: string }) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const join = useMutation({
    mutationFn: (form: FormData) =>
      post('/dashboard/api/join', {
        token,
        email: form.get('email'),
        password: form.get('password'),
      }),
    async onSuccess() {
      const kept = ['invitation', meKey[0]];
      client.removeQueries({ predicate: ({ queryKey }) => !kept.includes(String(queryKey[0])) });
      await client.invalidateQueries({ queryKey: meKey });
      // Replaced, so that going back does not lead to a used link.
      navigate('/', { replace: true });
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    join.mutate(new FormData(event.currentTarget));
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label="E-mail"
          description="Only used to sign in; nothing is sent."
          name="email"
          type="email"
          autoComplete="username"
          required
          withAsterisk={false}
        />
        <PasswordInput
          label="Password"
          description="At least 10 characters."
          name="password"
          autoComplete="new-password"
          minLength={10}
          maxLength={1024}
          required
          withAsterisk={false}
        />
        <ErrorNotice error={join.error} />
        <Button type="submit" loading={join.isPending}>
          Continue
        </Button>
      </Stack>
    </form>
  );
}
