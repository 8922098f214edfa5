// The endpoint of the audit log.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { sessionOf } from '#accounts/authenticate.ts';
import { toPageOptions } from '#accounts/paging.ts';
import { AuditQuery } from '#accounts/schema.ts';
import type { AuditLog } from './audit-log.ts';

export function auditRoutes(scope: FastifyInstance, auditLog: AuditLog): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
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
