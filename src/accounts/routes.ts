// The endpoints that the dashboard and the CLI call: sign-in, keys, members, sessions and the audit log.

import cookie from '@fastify/cookie';
import type {} from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { AuditLog } from '#accounts/audit/audit-log.ts';
import type { ListedApiKey } from '#accounts/keys/api-key-list.ts';
import type { ApiKeys } from '#accounts/keys/api-keys.ts';
import { toWireLimits } from '#accounts/limits/limit-set.ts';
import type { LimitSettings } from '#accounts/limits/settings.ts';
import type { SpendReport } from '#accounts/limits/spend-report.ts';
import type { Invitations } from '#accounts/people/invitations.ts';
import type { MemberRow, Members } from '#accounts/people/members.ts';
import type { PasswordResets } from '#accounts/people/password-resets.ts';
import type { Sessions } from '#accounts/people/sessions.ts';
import type { SignedIn, SignIn } from '#accounts/people/sign-in.ts';
import { applyErrorFormat } from '#http/error-format.ts';
import { clientAddress } from '#http/request-head.ts';
import { toReadable } from '#lib/text/email.ts';
import {
  type Authenticator,
  deviceCookie,
  requireRole,
  sessionCookie,
  sessionOf,
} from './authenticate.ts';
import { accountsErrorFormat } from './errors.ts';
import { toPageOptions } from './paging.ts';
import { type Role, scopes } from './principal.ts';
import {
  type ApiKey,
  ApiKeyChange,
  ApiKeysQuery,
  AuditQuery,
  IdParams,
  Join,
  KeyRevocation,
  Limits,
  LinkToken,
  Login,
  type Member,
  MemberRemoval,
  NewApiKey,
  NewInvitation,
  PageQuery,
  PasswordChange,
  PasswordReset,
  RoleChange,
  type Spend,
} from './schema.ts';

export interface AccountParts {
  authenticator: Authenticator;
  apiKeys: ApiKeys;
  limitSettings: LimitSettings;
  spendReport: SpendReport;
  auditLog: AuditLog;
  invitations: Invitations;
  members: Members;
  passwordResets: PasswordResets;
  sessions: Sessions;
  signIn: SignIn;
  /** Base URL of links, e.g. `http://127.0.0.1:8080`. */
  publicUrl(): string;
  /** Version of Millrace, for people who are signed in: others could choose an attack by it. */
  version: string;
  /** Whether people reach the server by https, so that its cookie is marked Secure. */
  secure: boolean;
}

const maxBytes = 65_536;
/** The only path that the device's cookie is sent to. */
const signInPath = '/dashboard/api/login';
/** The longest that browsers keep a cookie. */
const deviceSeconds = 400 * 86_400;

const guarded = { httpOnly: true, sameSite: 'strict' } as const;

function setDevice(reply: FastifyReply, device: string, secure: boolean): void {
  const options = { ...guarded, secure, path: signInPath, maxAge: deviceSeconds };
  reply.setCookie(deviceCookie, device, options);
}

export function accountRoutes(scope: FastifyInstance, parts: AccountParts): void {
  applyErrorFormat(scope, accountsErrorFormat, { maxBytes, anyContentType: false });
  scope.register(cookie);
  scope.register(async (open) => signedOutRoutes(open, parts));
  scope.register(async (inner) => {
    parts.authenticator.requireSession(inner);
    sessionRoutes(inner, parts);
    keyRoutes(inner, parts);
    limitRoutes(inner, parts);
    memberRoutes(inner, parts);
  });
}

/** The secret of a link follows the #, because browsers do not send that part to the server. */
export const toJoinLink = (publicUrl: string, token: string) => `${publicUrl}/#/join/${token}`;

/** Endpoints for people who are not signed in. */
function signedOutRoutes(scope: FastifyInstance, parts: AccountParts): void {
  const { signIn, invitations, passwordResets, secure } = parts;
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const visitor = (request: FastifyRequest) => ({
    address: clientAddress(request),
    userAgent: request.headers['user-agent'] ?? '',
    device: request.cookies[deviceCookie],
  });
  const welcome = (reply: FastifyReply, { token, expiresAt, device }: SignedIn) => {
    const expires = new Date(expiresAt);
    reply.setCookie(sessionCookie(secure), token, { ...guarded, secure, path: '/', expires });
    setDevice(reply, device, secure);
    return { ok: true };
  };

  app.post('/login', { schema: { body: Login } }, async (request, reply) => {
    const { email, password } = request.body;
    return welcome(reply, await signIn.login(email, password, visitor(request)));
  });
  app.post('/join', { schema: { body: Join } }, async (request, reply) => {
    const { token, email, password } = request.body;
    return welcome(reply, await signIn.join(token, email, password, visitor(request)));
  });
  // A POST, because proxies log URLs and the token must not appear in one.
  app.post('/invitations/look', { schema: { body: LinkToken } }, async (request) => {
    const { role, accountName, setup } = await invitations.get(request.body.token);
    return { role, account: accountName, setup };
  });
  app.post('/password-resets/look', { schema: { body: LinkToken } }, (request) =>
    passwordResets.get(request.body.token),
  );
  app.post('/password-resets', { schema: { body: PasswordReset } }, async (request, reply) => {
    const { token, password } = request.body;
    return welcome(reply, await signIn.reset(token, password, visitor(request)));
  });
}

function sessionRoutes(scope: FastifyInstance, parts: AccountParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { sessions, signIn, secure, version } = parts;

  app.get('/me', async (request) => {
    const { userId, email, role, accountId } = sessionOf(request);
    return { id: userId, email: toReadable(email), role, account_id: accountId, version };
  });
  app.post('/logout', async (request, reply) => {
    const session = sessionOf(request);
    await sessions.end(session, session.sessionId);
    reply.clearCookie(sessionCookie(secure), { path: '/', secure });
    return { ok: true };
  });
  app.post('/password', { schema: { body: PasswordChange } }, async (request, reply) => {
    const { current_password: current, new_password: next } = request.body;
    const { device } = await signIn.changePassword(sessionOf(request), current, next);
    setDevice(reply, device, secure);
    return { ok: true };
  });
  app.get('/sessions', { schema: { querystring: PageQuery } }, async (request) => {
    const { userId, sessionId } = sessionOf(request);
    const { data, next } = await sessions.list(userId, toPageOptions(request.query));
    return {
      data: data.map(({ id, address, user_agent, created_at, expires_at }) => ({
        id,
        address,
        user_agent,
        created_at: toTime(created_at),
        expires_at: toTime(expires_at),
        current: id === sessionId,
      })),
      next,
    };
  });
  app.delete('/sessions/:id', { schema: { params: IdParams } }, async (request) => {
    await sessions.end(sessionOf(request), request.params.id);
    return { ok: true };
  });
}

function keyRoutes(scope: FastifyInstance, parts: AccountParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { apiKeys, auditLog, spendReport } = parts;

  app.get('/api-keys', { schema: { querystring: ApiKeysQuery } }, async (request) => {
    const { accountId } = sessionOf(request);
    const { search } = request.query;
    const options = { search, ...toPageOptions(request.query) };
    const { data, next } = await apiKeys.list(accountId, options);
    const ids = data.map(({ id }) => id);
    const spend = await spendReport.ofKeys(accountId, ids);
    return { data: data.map((row) => toApiKey(row, spend(row.id))), next };
  });
  app.post('/api-keys', { schema: { body: NewApiKey } }, async (request) => {
    const session = requireRole(request, 'owner', 'member');
    const { label, scopes: wanted, expires_at, limits } = request.body;
    const input = {
      label,
      scopes: wanted ?? scopes,
      expiresAt: expires_at == null ? null : Date.parse(expires_at),
      limits: limits ?? {},
    };
    const { row, key } = await apiKeys.create(session.accountId, input, session);
    const made = { ...row, creator_email: session.email };
    return { ...toApiKey(made, spendReport.nothing()), key };
  });
  app.get('/api-keys/:id', { schema: { params: IdParams } }, async (request) => {
    const { accountId } = sessionOf(request);
    const row = await apiKeys.get(accountId, request.params.id);
    const spend = await spendReport.ofKeys(accountId, [row.id]);
    return toApiKey(row, spend(row.id));
  });
  app.patch(
    '/api-keys/:id',
    { schema: { params: IdParams, body: ApiKeyChange } },
    async (request) => {
      const session = requireRole(request, 'owner', 'member');
      const { label, limits } = request.body;
      const row = await apiKeys.update(session, request.params.id, {
        ...(label == null ? {} : { label }),
        ...(limits == null ? {} : { limits }),
      });
      const spend = await spendReport.ofKeys(session.accountId, [row.id]);
      return toApiKey(row, spend(row.id));
    },
  );
  app.delete(
    '/api-keys/:id',
    { schema: { params: IdParams, querystring: KeyRevocation } },
    async (request) => {
      const session = requireRole(request, 'owner', 'member');
      const letsFinish = request.query.running === 'finish';
      await apiKeys.revoke(session, request.params.id, { letsFinish });
      return { ok: true };
    },
  );
  app.get('/audit-events', { schema: { querystring: AuditQuery } }, async (request) => {
    const {
      user_id: userId,
      api_key_id: apiKeyId,
      resource_id: resourceId,
      ...rest
    } = request.query;
    const { accountId } = sessionOf(request);
    const page = toPageOptions(request.query);
    return auditLog.page(accountId, { ...rest, ...page, userId, apiKeyId, resourceId });
  });
}

function limitRoutes(scope: FastifyInstance, parts: AccountParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { limitSettings, spendReport } = parts;

  app.get('/limits', async (request) => {
    const { accountId } = sessionOf(request);
    const row = await limitSettings.getAccount(accountId);
    return { limits: toWireLimits(row), spend: await spendReport.ofAccount(accountId) };
  });
  app.put('/limits', { schema: { body: Limits } }, async (request) => {
    const session = requireRole(request, 'owner');
    const row = await limitSettings.changeAccount(session, request.body);
    return { limits: toWireLimits(row), spend: await spendReport.ofAccount(session.accountId) };
  });
}

function memberRoutes(scope: FastifyInstance, parts: AccountParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { members, invitations, publicUrl } = parts;

  app.get('/members', { schema: { querystring: PageQuery } }, async (request) => {
    const { accountId } = sessionOf(request);
    const { data, next } = await members.list(accountId, toPageOptions(request.query));
    return { data: data.map(toMember), next };
  });
  app.patch('/members/:id', { schema: { params: IdParams, body: RoleChange } }, async (request) => {
    const session = requireRole(request, 'owner');
    const affected = await members.setRole(session, request.params.id, request.body.role);
    return { ok: true, api_keys: affected };
  });
  app.delete(
    '/members/:id',
    { schema: { params: IdParams, querystring: MemberRemoval } },
    async (request) => {
      const { keys = 'revoke' } = request.query;
      const revoked = await members.remove(sessionOf(request), request.params.id, keys);
      return { ok: true, revoked_keys: revoked };
    },
  );

  app.get('/invitations', { schema: { querystring: PageQuery } }, async (request) => {
    const { accountId } = requireRole(request, 'owner');
    const { data, next } = await invitations.list(accountId, toPageOptions(request.query));
    return {
      data: data.map(({ id, role, created_at, expires_at }) => ({
        id,
        role,
        created_at: toTime(created_at),
        expires_at: toTime(expires_at),
      })),
      next,
    };
  });
  app.post('/invitations', { schema: { body: NewInvitation } }, async (request) => {
    const { role } = request.body;
    const { row, token } = await invitations.create(requireRole(request, 'owner'), role);
    const link = toJoinLink(publicUrl(), token);
    return { id: row.id, role, expires_at: toTime(row.expires_at), link };
  });
  app.delete('/invitations/:id', { schema: { params: IdParams } }, async (request) => {
    await invitations.revoke(requireRole(request, 'owner'), request.params.id);
    return { ok: true };
  });
}

const toTime = (ms: number) => new Date(ms).toISOString();
const toMaybeTime = (ms: number | null) => (ms === null ? null : toTime(ms));

const toMember = ({ id, email, role, created_at, api_keys }: MemberRow): Member => ({
  id,
  email: toReadable(email),
  role: role as Role,
  joined_at: toTime(created_at),
  api_keys,
});

function toApiKey(row: ListedApiKey, spend: Spend): ApiKey {
  return {
    id: row.id,
    label: row.label,
    hint: row.hint,
    scopes: JSON.parse(row.scopes),
    created_at: toTime(row.created_at),
    created_by:
      row.created_by === null ? null : { id: row.created_by, email: toReadable(row.creator_email) },
    expires_at: toMaybeTime(row.expires_at),
    last_used_at: toMaybeTime(row.last_used_at),
    limits: toWireLimits(row),
    spend,
  };
}
