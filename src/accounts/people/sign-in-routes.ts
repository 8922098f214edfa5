// The endpoints with which people sign in, and manage their sessions and their password.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { deviceCookie, sessionCookie, sessionOf } from '#accounts/authenticate.ts';
import { toPageOptions } from '#accounts/paging.ts';
import {
  IdParams,
  Join,
  LinkToken,
  Login,
  PageQuery,
  PasswordChange,
  PasswordReset,
} from '#accounts/schema.ts';
import { toTime } from '#accounts/wire-time.ts';
import { clientAddress } from '#http/request-head.ts';
import { toReadable } from '#lib/text/email.ts';
import type { Invitations } from './invitations.ts';
import type { PasswordResets } from './password-resets.ts';
import type { Sessions } from './sessions.ts';
import type { SignedIn, SignIn } from './sign-in.ts';

export interface SignInParts {
  readonly invitations: Invitations;
  readonly passwordResets: PasswordResets;
  readonly sessions: Sessions;
  readonly signIn: SignIn;
  /** Version of Millrace, for people who are signed in: others could choose an attack by it. */
  readonly version: string;
  /** Whether people reach the server by https, so that its cookie is marked Secure. */
  readonly secure: boolean;
}

/** The only path that the device's cookie is sent to. */
const signInPath = '/dashboard/api/login';
/** The longest that browsers keep a cookie. */
const deviceSeconds = 400 * 86_400;

const guarded = { httpOnly: true, sameSite: 'strict' } as const;

function setDevice(reply: FastifyReply, device: string, secure: boolean): void {
  const options = { ...guarded, secure, path: signInPath, maxAge: deviceSeconds };
  reply.setCookie(deviceCookie, device, options);
}

/** Endpoints for people who are not signed in. */
export function signedOutRoutes(scope: FastifyInstance, parts: SignInParts): void {
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

export function sessionRoutes(scope: FastifyInstance, parts: SignInParts): void {
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
