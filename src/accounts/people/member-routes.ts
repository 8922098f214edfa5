// The endpoints of the people in an account, and of the links with which others join it.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { requireRole, sessionOf } from '#accounts/authenticate.ts';
import { toPageOptions } from '#accounts/paging.ts';
import type { Role } from '#accounts/principal.ts';
import {
  IdParams,
  type Member,
  MemberRemoval,
  NewInvitation,
  PageQuery,
  RoleChange,
} from '#accounts/schema.ts';
import { toTime } from '#accounts/wire-time.ts';
import { toReadable } from '#lib/text/email.ts';
import type { Invitations } from './invitations.ts';
import type { MemberRow, Members } from './members.ts';

export interface MemberParts {
  readonly invitations: Invitations;
  readonly members: Members;
  /** Base URL of links, e.g. `http://127.0.0.1:8080`. */
  publicUrl(): string;
}

/** The secret of a link follows the #, because browsers do not send that part to the server. */
export const toJoinLink = (publicUrl: string, token: string) => `${publicUrl}/#/join/${token}`;

export function memberRoutes(scope: FastifyInstance, parts: MemberParts): void {
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
      const removal = await members.remove(sessionOf(request), request.params.id, keys);
      return { ok: true, ...removal };
    },
  );
  app.get('/members/:id/ssh', { schema: { params: IdParams } }, (request) =>
    members.findSsh(sessionOf(request).accountId, request.params.id),
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

const toMember = ({ id, email, role, created_at, api_keys }: MemberRow): Member => ({
  id,
  email: toReadable(email),
  role: role as Role,
  joined_at: toTime(created_at),
  api_keys,
});
