// The authenticated caller of a request. Code that runs after authentication depends on nothing else.

import { forbidden } from '#lib/errors.ts';

export const scopes = ['inference', 'cloud'] as const;
export type Scope = (typeof scopes)[number];

export const roles = ['owner', 'member', 'viewer'] as const;
export type Role = (typeof roles)[number];

interface Person {
  readonly accountId: string;
  /** Of a key: the present role of the person who created it. */
  readonly role: Role;
  /** Network address that the request came from. */
  readonly address: string;
}

export interface KeyPrincipal extends Person {
  readonly kind: 'key';
  readonly keyId: string;
  readonly scopes: readonly Scope[];
}

export interface SessionPrincipal extends Person {
  readonly kind: 'session';
  readonly sessionId: string;
  readonly userId: string;
  readonly email: string;
}

export type Principal = KeyPrincipal | SessionPrincipal;

/** Id of the key or the person: the unit of fairness where callers share a resource. */
export const idOf = (principal: Principal): string =>
  principal.kind === 'key' ? principal.keyId : principal.userId;

export function checkRole(role: Role, allowed: readonly Role[]): void {
  if (allowed.includes(role)) return;
  throw forbidden(`This needs the role ${allowed.join(' or ')}; yours is ${role}.`);
}
