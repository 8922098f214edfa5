// Hosts over HTTP: every signed-in person may read them, owners may change them.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { type Authenticator, requireRole } from '#accounts/authenticate.ts';
import { Type } from '#lib/schema/schema-builder.ts';
import type { HostChanges } from './host-changes.ts';
import { HostChange, HostChecks, HostParams, HostView, NewHost, RemoveQuery } from './schema.ts';

export function hostRoutes(
  scope: FastifyInstance,
  authenticator: Authenticator,
  hostChanges: HostChanges,
): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  authenticator.requireSession(scope);

  app.get(
    '/hosts',
    { schema: { response: { 200: Type.Object({ data: Type.Array(HostView) }) } } },
    async () => ({ data: await hostChanges.list() }),
  );
  app.post('/hosts', { schema: { body: NewHost, response: { 200: HostView } } }, async (request) =>
    hostChanges.add(requireRole(request, 'owner'), request.body),
  );
  app.patch(
    '/hosts/:name',
    { schema: { params: HostParams, body: HostChange, response: { 200: HostView } } },
    async (request) => {
      const { draining } = request.body;
      return hostChanges.setDraining(requireRole(request, 'owner'), request.params.name, draining);
    },
  );
  app.delete(
    '/hosts/:name',
    { schema: { params: HostParams, querystring: RemoveQuery } },
    async (request) => {
      const forget = request.query.forget === 'true';
      await hostChanges.remove(requireRole(request, 'owner'), request.params.name, forget);
      return {};
    },
  );
  app.post(
    '/hosts/:name/check',
    { schema: { params: HostParams, response: { 200: HostChecks } } },
    async (request) => {
      requireRole(request, 'owner');
      return hostChanges.check(request.params.name);
    },
  );
}
