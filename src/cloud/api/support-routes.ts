// Operations of the contract for things that this cloud never has: maintenance events, support tickets and fabric
// partitions. Clients poll them, so lists are empty and everything else is not found or not offered.

import type {} from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import {
  fabricNotOffered,
  resourceNotFound,
  ticketNotFound,
  ticketsNotOffered,
} from '#cloud/errors.ts';
import {
  FabricChange,
  IdParams,
  MaintenanceEvents,
  NewFabric,
  NewTicket,
  TicketList,
  TicketParams,
} from '#cloud/schema.ts';
import { operationsOf } from './operation.ts';

export function supportRoutes(scope: FastifyInstance): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  // One client uses the underscore. The hyphen follows the other paths.
  for (const path of ['/maintenance_events', '/maintenance-events']) {
    app.get(
      path,
      operationsOf('Maintenance')(
        `List maintenance events${path.includes('-') ? '' : ' (older path)'}`,
        MaintenanceEvents,
      ),
      async () => ({ data: { maintenance_events: [], page_token: null } }),
    );
  }
  ticketRoutes(scope);
  fabricRoutes(scope);
}

const ticketOperations: readonly (readonly [
  'GET' | 'PATCH' | 'POST' | 'DELETE',
  string,
  string,
])[] = [
  ['GET', '', 'Get a ticket'],
  ['PATCH', '', 'Change a ticket'],
  ['GET', '/attachments', "List a ticket's attachments"],
  ['POST', '/attachments', 'Start the upload of an attachment'],
  ['DELETE', '/attachments/:attachment_id', 'Delete an attachment'],
  ['POST', '/attachments/:attachment_id/complete', 'Complete the upload of an attachment'],
  ['GET', '/attachments/:attachment_id/download', 'Get the URL of an attachment'],
];

function ticketRoutes(scope: FastifyInstance): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const tags = ['Tickets'];
  app.get('/tickets', operationsOf('Tickets')('List tickets', TicketList), async () => ({
    data: { tickets: [], page_token: null },
  }));
  app.post('/tickets', { schema: { tags, summary: 'Create a ticket', body: NewTicket } }, () => {
    throw ticketsNotOffered();
  });
  for (const [method, path, summary] of ticketOperations) {
    app.route({
      method,
      url: `/tickets/:ticket_id${path}`,
      schema: { tags, summary, params: TicketParams },
      handler: () => {
        throw ticketNotFound();
      },
    });
  }
}

function fabricRoutes(scope: FastifyInstance): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const tags = ['Fabric'];
  app.post(
    '/fabric',
    { schema: { tags, summary: 'Create a fabric partition', body: NewFabric } },
    (request) => {
      throw fabricNotOffered(request.body.region);
    },
  );
  app.post(
    '/fabric/:id',
    {
      schema: { tags, summary: 'Rename a fabric partition', params: IdParams, body: FabricChange },
    },
    () => {
      throw resourceNotFound();
    },
  );
  app.delete(
    '/fabric/:id',
    { schema: { tags, summary: 'Delete a fabric partition', params: IdParams } },
    () => {
      throw resourceNotFound();
    },
  );
}
