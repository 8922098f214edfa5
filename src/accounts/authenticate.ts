// Turns a request into a principal: an API key sent as Bearer, Basic or x-api-key, or the dashboard's session cookie. A
// cookie is accepted only if our own page sent the request.

import assert from 'node:assert';
import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ApiKeys } from '#accounts/keys/api-keys.ts';
import type { Sessions } from '#accounts/people/sessions.ts';
import { clientAddress } from '#http/request-head.ts';
import type { Clock } from '#lib/clock.ts';
import { forbidden, invalidCredentials, noCredentials } from '#lib/errors.ts';
import { maskSecret } from '#lib/secrets/secrets.ts';
import {
  checkRole,
  type KeyPrincipal,
  type Principal,
  type Role,
  type Scope,
  type SessionPrincipal,
} from './principal.ts';

/**
 * Name of the session's cookie. Over TLS it has the prefix that makes browsers refuse one that another host of the
 * same domain has set.
 */
export const sessionCookie = (secure: boolean) =>
  secure ? '__Host-millrace_session' : 'millrace_session';
export const deviceCookie = 'millrace_device';

export interface Authenticator {
  /** Requires a key or a session that has the scope. For the APIs. */
  requireScope(app: FastifyInstance, scope: Scope): void;
  /** Requires a session. For the dashboard's endpoints. */
  requireSession(app: FastifyInstance): void;
  /** Refuses a caller that has lost the scope, for handlers that read the body themselves. */
  recheck(request: FastifyRequest, scope: Scope): Promise<void>;
  /** Looks up the request's session again, for connections that outlive their request's response. */
  findSession(request: FastifyRequest): Promise<SessionPrincipal | undefined>;
}

interface Carrier {
  principal: Principal | null;
  /** When the principal was found. */
  foundAt: number;
}

/**
 * Keys and sessions are cached for as long: a request for a model whose body arrives in time needs
 * no second lookup.
 */
const trustedMs = 1000;

export function principalOf(request: FastifyRequest): Principal {
  const principal = findPrincipal(request);
  assert(principal !== null, 'this route is not behind authentication');
  return principal;
}

/** Null until the caller is authenticated. */
export const findPrincipal = (request: FastifyRequest): Principal | null =>
  (request as FastifyRequest & Partial<Carrier>).principal ?? null;

export function sessionOf(request: FastifyRequest): SessionPrincipal {
  const principal = principalOf(request);
  assert(principal.kind === 'session', 'this route is not behind a session');
  return principal;
}

export function requireRole(request: FastifyRequest, ...allowed: Role[]): SessionPrincipal {
  const session = sessionOf(request);
  checkRole(session.role, allowed);
  return session;
}

/** For what viewers may not even read: prompts and answers. */
export function refuseViewer(request: FastifyRequest): void {
  if (principalOf(request).role === 'viewer')
    throw forbidden('A viewer reads neither prompts nor answers.');
}

/** `secure` says whether people reach the server by https. */
export function createAuthenticator(
  apiKeys: ApiKeys,
  sessions: Sessions,
  { secure, clock }: { secure: boolean; clock: Clock },
): Authenticator {
  const cookieName = sessionCookie(secure);

  async function withSession(request: FastifyRequest, token: string): Promise<SessionPrincipal> {
    const session = await sessions.find(token, clientAddress(request));
    if (session === undefined) throw noCredentials();
    if (!isSafe(request) && !isOurPage(request)) {
      throw forbidden('This request came from a page of another site.');
    }
    return session;
  }

  async function authenticate(request: FastifyRequest): Promise<Principal> {
    const key = readKey(request.headers.authorization) ?? readPlainKey(request);
    if (key !== null) return withKey(apiKeys, request, key);
    const token = readSession(request, cookieName);
    if (token) return withSession(request, token);
    throw noCredentials();
  }

  return {
    requireScope(app, scope) {
      const check: Check = (principal, request) => checkScope(principal, request, scope);
      guard(app, { authenticate, check, clock, trustedMs: scope === 'inference' ? trustedMs : 0 });
    },
    requireSession(app) {
      guard(app, { authenticate, check: checkSession, clock, trustedMs: 0 });
    },
    recheck: async (request, scope) => checkScope(await authenticate(request), request, scope),
    findSession: async (request) => {
      const token = readSession(request, cookieName);
      return token ? sessions.find(token, clientAddress(request)) : undefined;
    },
  };
}

type Check = (principal: Principal, request: FastifyRequest) => void;

interface Guard {
  authenticate(request: FastifyRequest): Promise<Principal>;
  readonly check: Check;
  readonly clock: Clock;
  /** A body that arrives within this time needs no second check. */
  readonly trustedMs: number;
}

/** Also refuses a caller that lost the right while the body arrived, which may take minutes. */
function guard(app: FastifyInstance, { authenticate, check, clock, trustedMs }: Guard): void {
  app.decorateRequest('principal', null).decorateRequest('foundAt', 0);
  const admit = async (request: FastifyRequest) => {
    if (request.is404) return;
    const principal = await authenticate(request);
    check(principal, request);
    const carrier = request as FastifyRequest & Carrier;
    carrier.principal = principal;
    carrier.foundAt = clock.now();
  };
  app.addHook('onRequest', admit);
  app.addHook('preHandler', async (request) => {
    const { foundAt } = request as FastifyRequest & Carrier;
    if (!isSafe(request) && clock.now() - foundAt >= trustedMs) await admit(request);
  });
}

async function withKey(
  apiKeys: ApiKeys,
  request: FastifyRequest,
  key: string,
): Promise<KeyPrincipal> {
  const found = await apiKeys.find(key);
  if (found === undefined) throw invalidCredentials(maskSecret(key));
  const { id, accountId, scopes, role } = found;
  return { kind: 'key', keyId: id, accountId, scopes, role, address: clientAddress(request) };
}

function checkScope(principal: Principal, request: FastifyRequest, scope: Scope): void {
  const isKey = principal.kind === 'key';
  if (isKey && !principal.scopes.includes(scope))
    throw forbidden(`This API key lacks the scope "${scope}".`);
  if (principal.role === 'viewer' && !isSafe(request))
    throw forbidden(
      isKey
        ? 'The person who created this API key is a viewer now: it may look, but not use or change anything.'
        : 'A viewer may look, but not use or change anything.',
    );
}

function checkSession({ kind }: Principal): void {
  if (kind !== 'session') throw forbidden('Sign in for this; an API key is not enough.');
}

const isSafe = (request: FastifyRequest) => request.method === 'GET' || request.method === 'HEAD';

/** Browsers send the origin of a request. A client that sends none is not a browser and has no cookies to steal. */
export function isOurPage({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  const { origin } = headers;
  return origin === undefined || (URL.canParse(origin) && new URL(origin).host === headers.host);
}

/** Read here rather than by the cookie plugin, whose hooks would cost every API request. */
function readSession({ headers }: FastifyRequest, name: string): string | undefined {
  return headers.cookie === undefined
    ? undefined
    : cookie.fastifyCookie.parse(headers.cookie)[name];
}

/** Anthropic's clients send the key in a header of its own. Node joins repeated ones into one text. */
const readPlainKey = ({ headers }: FastifyRequest): string | null =>
  (headers['x-api-key'] as string | undefined)?.trim() || null;

/** Accepts Bearer, Basic with base64 of `key:`, and Basic with the raw key: all three are in use. */
export function readKey(header: string | undefined): string | null {
  if (header === undefined) return null;
  const [scheme = '', value = ''] = header.trim().split(/\s+/, 2);
  if (/^bearer$/i.test(scheme)) return value || null;
  if (!/^basic$/i.test(scheme) || value === '') return null;
  const decoded = /^[A-Za-z0-9+/]+={0,2}$/.test(value)
    ? Buffer.from(value, 'base64').toString('latin1')
    : '';
  const user = /^([\x21-\x39\x3b-\x7e]+):/.exec(decoded)?.[1];
  return user ?? value;
}
