// Writes one log line and one observation per request. They name the route and not the URL, which
// may hold ids. The line has the request's id, which every response carries.

import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import type { LogFn } from 'pino';
import type { Registry } from 'prom-client';
import { memoize } from '#lib/memory/caches.ts';
import { histogram } from '#lib/telemetry/series.ts';
import { addHeaders, type HeaderList } from './response-headers.ts';

/** nginx's status for a client that left before its response began: logged and counted, never sent. */
const clientLeft = 499;

/** Members of a line besides the route, the status and the time. Undefined ones are left out. */
export type LineMembers = Readonly<Record<string, string | number | null | undefined>>;

/** A line that waits until it is known what served its request. */
interface HeldLine {
  members: LineMembers;
  isHeld: boolean;
  /** Null until the response is complete. */
  write: (() => void) | null;
}

interface Carrier {
  heldLine: HeldLine | null;
}

/** Holds the line of a request, which may end after its response. `release` must be called exactly once. */
export function holdLine(request: FastifyRequest) {
  const held: HeldLine = { members: {}, isHeld: true, write: null };
  (request as FastifyRequest & Carrier).heldLine = held;
  return {
    add(members: LineMembers): void {
      held.members = members;
    },
    release(): void {
      held.isHeld = false;
      held.write?.();
    },
  };
}

/**
 * Gives every request its id and the headers of every response, and observes it when it is over. Fastify's
 * onResponse hook is not called when the client leaves early; `close` always is.
 */
export function observeRequests(
  app: FastifyInstance,
  log: FastifyBaseLogger,
  registry: Registry,
  fixedHeaders: Readonly<HeaderList>,
  toMembers: (request: FastifyRequest) => LineMembers,
): void {
  app.decorateRequest('heldLine', null);
  const observe = createRequestObserver(log, registry);
  app.addHook('onRequest', (request, reply, done) => {
    const { id, method, routeOptions } = request;
    reply.header('x-request-id', id);
    addHeaders(reply, fixedHeaders);
    reply.raw.once('close', () => {
      const route = routeOptions.url ?? 'unknown';
      const status = reply.raw.headersSent ? reply.statusCode : clientLeft;
      const ms = reply.elapsedTime;
      const held = (request as FastifyRequest & Carrier).heldLine;
      const write = () => {
        const members = { ...toMembers(request), ...held?.members };
        observe({ method, route, status, id, ms, members });
      };
      if (held?.isHeld) held.write = write;
      else write();
    });
    done();
  });
}

interface ObservedRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly id: string;
  readonly ms: number;
  readonly members: LineMembers;
}

/** The returned function is called for each request once its response is complete. */
function createRequestObserver(log: FastifyBaseLogger, registry: Registry) {
  const duration = histogram(registry, {
    name: 'http_server_request_duration_seconds',
    help: 'Time from the request to the end of its response.',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
  });
  // The labels and the child logger are the same for all requests of a kind, so they are made once.
  const kindOf = memoize(
    ({ method, route, status }: ObservedRequest) => `${method} ${route} ${status}`,
    ({ method, route, status }) => {
      const own = log.child({ method, route, status });
      const series = duration(method, route, String(status));
      return { series, write: toWriter(own, method, status) };
    },
  );
  return (request: ObservedRequest): void => {
    const { series, write } = kindOf(request);
    series.observe(request.ms / 1000);
    write({ request_id: request.id, ms: request.ms, ...request.members }, 'request');
  };
}

/** Successful reads are logged at debug: they change nothing, and health checks would drown the rest. */
function toWriter(log: FastifyBaseLogger, method: string, status: number): LogFn {
  const isRead = (method === 'GET' || method === 'HEAD') && status < 400;
  return isRead ? log.debug.bind(log) : log.info.bind(log);
}
