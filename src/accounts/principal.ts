// Who is asking, once it is known. Everything after authentication speaks of this and of nothing else.

export const scopes = ['inference', 'cloud'] as const;
export type Scope = (typeof scopes)[number];

export const roles = ['owner', 'member', 'viewer'] as const;
export type Role = (typeof roles)[number];

interface Person {
  readonly accountId: string;
  /** Where the request came from. */
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
  readonly role: Role;
}

export type Principal = KeyPrincipal | SessionPrincipal;

/** Of the key or the person: what counts as one where callers share something. */
export const idOf = (principal: Principal): string =>
  principal.kind === 'key' ? principal.keyId : principal.userId;
