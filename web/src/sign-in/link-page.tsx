// What the pages behind one-time links share: the notice of a link that does not work, and the way in.

import { Anchor, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { ApiError } from '../api.ts';
import { AuthLayout } from '../components/auth-layout.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { meKey, useMeQuery } from '../current-user.ts';

interface InvalidLinkProps {
  error: Error;
  onRetry: () => void;
  /** How to get a new link. */
  children: ReactNode;
}

export function InvalidLink({ error, onRetry, children }: InvalidLinkProps) {
  const me = useMeQuery();
  const isDead = error instanceof ApiError && error.status === 404;
  return (
    <AuthLayout title={isDead ? 'This link no longer works' : 'This link could not be checked'}>
      {isDead ? <Text>{children}</Text> : <ErrorNotice error={error} onRetry={onRetry} />}
      <Anchor component={Link} href="/">
        {me.data ? 'Go to the dashboard' : 'Sign in'}
      </Anchor>
    </AuthLayout>
  );
}

/** Shows the dashboard to the user whom a link has signed in. `linkQuery` is the query that describes the link. */
export function useEnter(linkQuery: string) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  return async () => {
    const kept = [linkQuery, meKey[0]];
    client.removeQueries({ predicate: ({ queryKey }) => !kept.includes(String(queryKey[0])) });
    await client.invalidateQueries({ queryKey: meKey });
    // Replaces the history entry, so that the back button does not lead to the used link.
    navigate('/', { replace: true });
  };
}
