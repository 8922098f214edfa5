// The page behind set-up links and invitation links: says what the link is for and creates the user.

import { Button, Skeleton, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { post } from '../api.ts';
import { AuthLayout } from '../components/auth-layout.tsx';
import { Form } from '../components/form.tsx';
import { type Role, roleAbility, useMeQuery } from '../current-user.ts';
import { EmailField, NewPasswordField } from './credential-fields.tsx';
import { InvalidLink, useEnter } from './link-page.tsx';

interface InvitationView {
  role: Role;
  account: string;
  /** True for the set-up link of a new server. */
  setup: boolean;
}

export function Join({ token }: { token: string }) {
  const me = useMeQuery();
  const invitation = useQuery({
    queryKey: ['invitation', token],
    queryFn: () => post<InvitationView>('/dashboard/api/invitations/look', { token }),
    staleTime: Number.POSITIVE_INFINITY,
  });

  if (invitation.isPending) {
    return (
      <AuthLayout title="Join">
        <Skeleton h={220} />
      </AuthLayout>
    );
  }
  if (invitation.isError) {
    return (
      <InvalidLink error={invitation.error} onRetry={() => invitation.refetch()}>
        Links work once and expire. Ask an owner for a new one. If this is the set-up link of a new
        server, restart the server: it prints a new link until the first user has joined.
      </InvalidLink>
    );
  }

  const { setup, role } = invitation.data;
  return (
    <AuthLayout
      title={setup ? 'Set up Millrace' : `Join as ${role}`}
      description={
        setup
          ? 'You are the first user. Choose how you sign in. You will be the owner of this server.'
          : `You have been invited as ${role === 'owner' ? 'an' : 'a'} ${role}. You can ${roleAbility[role]}.`
      }
    >
      {me.data && (
        <Text size="sm">
          You are signed in as {me.data.email}. If you continue, a new user is created and you are
          signed in as that user.
        </Text>
      )}
      <JoinForm token={token} />
    </AuthLayout>
  );
}

function JoinForm({ token }: { token: string }) {
  const enter = useEnter('invitation');
  const join = useMutation({
    mutationFn: (form: FormData) =>
      post('/dashboard/api/join', {
        token,
        email: form.get('email'),
        password: form.get('password'),
      }),
    onSuccess: enter,
  });
  return (
    <Form
      onSubmit={join.mutate}
      error={join.error}
      actions={
        <Button type="submit" loading={join.isPending}>
          Continue
        </Button>
      }
    >
      <EmailField description="Used only to sign in. No email is sent." />
      <NewPasswordField label="Password" name="password" />
    </Form>
  );
}
