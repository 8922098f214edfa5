// The user who is signed in, and the types of account endpoints that have no wire schema.

import { notifications } from '@mantine/notifications';
import { type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import type { ApiKey, Role } from '#accounts/schema.ts';
import { ApiError, get, post } from './api.ts';

export type Scope = ApiKey['scopes'][number];

export const scopeName: Record<Scope, string> = { inference: 'Models', cloud: 'Machines' };

export const roles = ['owner', 'member', 'viewer'] as const satisfies readonly Role[];
export type { Role };

/** What each role can do, after "can". */
export const roleAbility: Record<Role, string> = {
  owner: 'manage people and everything else',
  member: 'use models and machines, and create keys',
  viewer: 'view everything, but change nothing',
};

export const roleName: Record<Role, string> = {
  owner: 'Owner',
  member: 'Member',
  viewer: 'Viewer',
};

export interface Me {
  id: string;
  email: string;
  role: Role;
  /** The version of the server. */
  version: string;
}

export interface Invitation {
  id: string;
  role: Role;
  expires_at: string;
  /** Only in the response to its creation. */
  link?: string;
}

export interface Session {
  id: string;
  address: string;
  user_agent: string;
  created_at: string;
  current: boolean;
}

export const meKey = ['me'];

/** The data is null if no user is signed in. */
export function useMeQuery() {
  return useQuery({
    queryKey: meKey,
    // Notices on every page when the session ends or the server goes away.
    refetchInterval: 10_000,
    queryFn: async ({ client }): Promise<Me | null> => {
      try {
        return await get<Me>('/dashboard/api/me');
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 401)) throw error;
        noteEnd(client);
        return null;
      }
    },
  });
}

/** Its data is true if a session ended although the user did not sign out. Signing in removes it. */
const sessionEndedKey = ['session-ended'];

/** Its data is true while the user signs out: a poll that is refused meanwhile is no surprise. */
const signingOutKey = ['signing-out'];

function noteEnd(client: QueryClient): void {
  const isExpected = client.getQueryData(signingOutKey) === true;
  if (client.getQueryData(meKey) && !isExpected) client.setQueryData(sessionEndedKey, true);
}

/** Shows the sign-in form in place of the page. */
export function endSession(client: QueryClient): void {
  noteEnd(client);
  client.setQueryData(meKey, null);
}

export const hasSessionEnded = (client: QueryClient) =>
  client.getQueryData(sessionEndedKey) === true;

export const MeContext = createContext<Me | null>(null);

export function useMe(): Me & { canUse: boolean; canManage: boolean } {
  const me = useContext(MeContext);
  if (me === null) throw new Error('useMe needs a signed-in user');
  return { ...me, canUse: me.role !== 'viewer', canManage: me.role === 'owner' };
}

export function useSignOut() {
  const client = useQueryClient();
  return async () => {
    client.setQueryData(signingOutKey, true);
    try {
      await post('/dashboard/api/logout');
    } catch (error) {
      // A 401 means that the session has ended already.
      if (!(error instanceof ApiError && error.status === 401)) {
        client.setQueryData(signingOutKey, false);
        notifications.show({ message: (error as Error).message });
        return;
      }
    }
    client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== meKey[0] });
    client.setQueryData(meKey, null);
  };
}
