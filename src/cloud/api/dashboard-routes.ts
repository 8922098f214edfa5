// What the dashboard needs of the cloud beyond the public API: costs, reasons, boot logs, tags
// of machines that exist, and live updates.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { type Authenticator, requireRole, sessionOf } from '#accounts/authenticate.ts';
import type { Cloud } from '#cloud/cloud.ts';
import { CloudError } from '#cloud/errors.ts';
import { IdParams, TagsChange } from '#cloud/schema.ts';
import { toId } from '#cloud/wire-id.ts';
import { ClientDisconnect } from '#http/client-disconnect.ts';
import { toHeaderObject } from '#http/header-list.ts';
import { createEventStreams, eventStreamHeaders } from '#http/sse.ts';
import { invalidBody, notFound } from '#lib/errors.ts';
import { Type } from '#lib/schema/schema-builder.ts';

const Span = Type.Object({
  from: Type.String({ format: 'date-time' }),
  to: Type.String({ format: 'date-time' }),
});

/** A browser tab holds one stream; more than this is a leak or an attack. */
const maxStreamsPerAccount = 100;

export function cloudDashboardRoutes(
  scope: FastifyInstance,
  { authenticator, cloud }: { authenticator: Authenticator; cloud: Cloud },
): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  authenticator.requireSession(scope);

  app.get('/usage/machines', { schema: { querystring: Span } }, async (request) => {
    const [from, to] = [Date.parse(request.query.from), Date.parse(request.query.to)];
    // Not `from >= to`: a leap second is a time to the schema and no number to JavaScript.
    if (!(from < to)) throw invalidBody('from must be before to.', 'from');
    const data = await cloud.usages.between(sessionOf(request).accountId, from, to);
    const sum = (member: 'seconds' | 'cents') =>
      data.reduce((total, usage) => total + usage[member], 0);
    return {
      data,
      total: { seconds: sum('seconds'), cents: Math.round(sum('cents') * 100) / 100 },
    };
  });
  app.get('/instances', async (request) => ({
    data: await cloud.details.list(sessionOf(request).accountId),
  }));
  app.get('/instances/:id/boot-log', { schema: { params: IdParams } }, async (request) => {
    const { accountId } = sessionOf(request);
    return { data: await cloud.details.bootLog(accountId, toId(request.params.id)).catch(hide) };
  });
  app.put(
    '/instances/:id/tags',
    { schema: { params: IdParams, body: TagsChange } },
    async (request) => {
      const who = requireRole(request, 'owner', 'member');
      const { tags } = request.body;
      if (new Set(tags.map(({ key }) => key)).size < tags.length) {
        throw invalidBody('A tag is there twice.', 'tags');
      }
      return { data: await cloud.instances.retag(who, toId(request.params.id), tags).catch(hide) };
    },
  );
  eventRoutes(app, cloud);
}

/** The public API's errors have their own dialect. */
function hide(error: unknown): never {
  throw error instanceof CloudError ? notFound('This instance') : error;
}

function eventRoutes(app: FastifyInstance, { events }: Cloud): void {
  const eventStreams = createEventStreams();
  const open = new Map<string, number>();
  const streams = new Set<() => void>();
  // Streams never end by themselves, and closing waits for them.
  app.addHook('preClose', async () => {
    for (const end of streams) end();
  });

  /**
   * One event per change; the data is the instance's id and status, to read it again by. There is no HEAD:
   * its answer would wait for an end that never comes.
   */
  app.get('/events', { exposeHeadRoute: false }, (request, reply) => {
    const { accountId } = sessionOf(request);
    const count = open.get(accountId) ?? 0;
    if (count >= maxStreamsPerAccount) {
      throw invalidBody('This account has too many event streams open.');
    }
    open.set(accountId, count + 1);
    reply.hijack();
    const own = reply.getHeaders() as Record<string, string>;
    const headers = Object.entries({ ...own, ...toHeaderObject(eventStreamHeaders) }).flat();
    const stream = eventStreams.open(reply.raw, headers, new ClientDisconnect(reply.raw));
    const end = () => stream.end();
    stream.send(JSON.stringify({ type: 'ready' }));
    const unsubscribe = events.subscribe(accountId, ({ instanceId, status }) => {
      // A reader that does not read loses events instead of filling our memory; it reads the list anyway.
      if (reply.raw.writableNeedDrain) return;
      stream.send(JSON.stringify({ type: 'instance', id: instanceId, status }));
    });
    streams.add(end);
    reply.raw.once('close', () => {
      unsubscribe();
      streams.delete(end);
      const left = (open.get(accountId) ?? 1) - 1;
      if (left > 0) open.set(accountId, left);
      else open.delete(accountId);
    });
  });
}
