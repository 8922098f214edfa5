// Routes of the dashboard beyond the public cloud API: costs, reasons, boot logs, live figures, tags of existing
// instances, and live updates.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { type Authenticator, requireRole, sessionOf } from '#accounts/authenticate.ts';
import { toPageOptions } from '#accounts/paging.ts';
import { createPersonStreams } from '#accounts/people/person-streams.ts';
import { PageQuery, page } from '#accounts/schema.ts';
import { CloudError } from '#cloud/errors.ts';
import { listNetworkNotices } from '#cloud/hosts/host-view.ts';
import type { Hosts } from '#cloud/hosts/hosts.ts';
import type { InstanceDetails } from '#cloud/instances/instance-details.ts';
import type { InstanceEvents } from '#cloud/instances/instance-events.ts';
import type { InstanceUsages } from '#cloud/instances/instance-usage.ts';
import type { Instances } from '#cloud/instances/instances.ts';
import type { Capacity } from '#cloud/placement/capacity.ts';
import type { Offers } from '#cloud/placement/instance-types.ts';
import { IdParams, TagsChange } from '#cloud/schema.ts';
import { toId } from '#cloud/wire.ts';
import { invalidBody, notFound } from '#lib/errors.ts';
import { Type } from '#lib/schema/schema-builder.ts';

export interface CloudDashboardParts {
  authenticator: Authenticator;
  cloud: {
    details: InstanceDetails;
    events: InstanceEvents;
    capacity: Pick<Capacity, 'obstacles'>;
    hosts: Pick<Hosts, 'all'>;
    instances: Pick<Instances, 'change'>;
    offers(): Offers;
    usages: InstanceUsages;
  };
}

const TimeRange = Type.Object({
  from: Type.String({ format: 'date-time' }),
  to: Type.String({ format: 'date-time' }),
  ...page,
});

/** A browser tab has one stream; more than this is a leak or an attack. */
const maxStreamsPerPerson = 100;

export function cloudDashboardRoutes(
  scope: FastifyInstance,
  { authenticator, cloud }: CloudDashboardParts,
): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  authenticator.requireSession(scope);

  app.get('/usage/machines', { schema: { querystring: TimeRange } }, async (request) => {
    const [from, to] = [Date.parse(request.query.from), Date.parse(request.query.to)];
    // Not `from >= to`: the schema accepts a leap second, which Date.parse turns into NaN.
    if (!(from < to)) throw invalidBody('from must be before to.', 'from');
    const { accountId } = sessionOf(request);
    const { data, next } = await cloud.usages.list(
      accountId,
      { from, to },
      toPageOptions(request.query),
    );
    return { data, next, total: await cloud.usages.total(accountId, { from, to }) };
  });
  app.get('/instances', { schema: { querystring: PageQuery } }, (request) =>
    cloud.details.list(sessionOf(request).accountId, toPageOptions(request.query)),
  );
  app.get('/launch-obstacles', async () => {
    const obstacleOf = await cloud.capacity.obstacles();
    const obstacles = cloud.offers().all.map((offer) => [offer.type.name, obstacleOf(offer)]);
    return { data: Object.fromEntries(obstacles.filter(([, reason]) => reason !== null)) };
  });
  app.get('/network-notices', async () => ({ data: listNetworkNotices(cloud.hosts.all()) }));
  app.get('/instances/:id/boot-log', { schema: { params: IdParams } }, async (request) => {
    const { accountId } = sessionOf(request);
    return { data: await cloud.details.bootLog(accountId, toId(request.params.id)).catch(hide) };
  });
  app.get('/instances/:id/stats', { schema: { params: IdParams } }, (request) =>
    cloud.details.stats(sessionOf(request).accountId, toId(request.params.id)).catch(hide),
  );
  app.put(
    '/instances/:id/tags',
    { schema: { params: IdParams, body: TagsChange } },
    async (request) => {
      const principal = requireRole(request, 'owner', 'member');
      const { tags } = request.body;
      if (new Set(tags.map(({ key }) => key)).size < tags.length) {
        throw invalidBody('A tag key occurs twice.', 'tags');
      }
      const id = toId(request.params.id);
      return { data: await cloud.instances.change(principal, id, { tags }).catch(hide) };
    },
  );
  eventRoutes(app, authenticator, cloud.events);
}

/** Errors of the public API have another format. */
function hide(error: unknown): never {
  throw error instanceof CloudError ? notFound('This instance') : error;
}

function eventRoutes(
  app: FastifyInstance,
  authenticator: Authenticator,
  events: InstanceEvents,
): void {
  const openStream = createPersonStreams(app, authenticator, maxStreamsPerPerson);

  /** One event per change, with the id and the status of the instance. */
  app.get('/events', { exposeHeadRoute: false }, (request, reply) => {
    const stream = openStream(request, reply);
    stream.send(JSON.stringify({ type: 'ready' }));
    const unsubscribe = events.subscribe(sessionOf(request).accountId, ({ instanceId, status }) => {
      // A slow reader loses events instead of filling the memory. It reads the list anyway.
      if (stream.isFull()) return;
      stream.send(JSON.stringify({ type: 'instance', id: instanceId, status }));
    });
    stream.onClose(unsubscribe);
  });
}
