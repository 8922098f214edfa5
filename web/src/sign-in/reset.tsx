// The page behind a reset link: sets a new password and signs the user in.

import { Button, Code, Skeleton } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { post } from '../api.ts';
import { programName } from '../browser/program-name.ts';
import { AuthLayout } from '../components/auth-layout.tsx';
import { Form } from '../components/form.tsx';
import { NewPasswordField } from './credential-fields.tsx';
import { InvalidLink, useEnter } from './link-page.tsx';

const path = '/dashboard/api/password-resets';

export function Reset({ token }: { token: string }) {
  const enter = useEnter('password-reset');
  const link = useQuery({
    queryKey: ['password-reset', token],
    queryFn: () => post<{ email: string }>(`${path}/look`, { token }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const reset = useMutation({
    mutationFn: (form: FormData) => post(path, { token, password: form.get('password') }),
    onSuccess: enter,
  });

  if (link.isPending) {
    return (
      <AuthLayout title="Reset password">
        <Skeleton h={160} />
      </AuthLayout>
    );
  }
  if (link.isError) {
    return (
      <InvalidLink error={link.error} onRetry={() => link.refetch()}>
        Reset links work once, for an hour. To get a new one, run{' '}
        <Code>{programName()} team reset</Code> on the server.
      </InvalidLink>
    );
  }
  const { email } = link.data;
  return (
    <AuthLayout
      title="Reset password"
      description={`Choose a new password for ${email}. You are signed out everywhere else.`}
    >
      <Form
        onSubmit={reset.mutate}
        error={reset.error}
        actions={
          <Button type="submit" loading={reset.isPending}>
            Set password
          </Button>
        }
      >
        {/* Tells password managers which user the password belongs to. */}
        <input hidden name="username" autoComplete="username" readOnly value={email} />
        <NewPasswordField label="New password" name="password" />
      </Form>
    </AuthLayout>
  );
}
