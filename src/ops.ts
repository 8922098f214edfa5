// For the people who run it: health, metrics, and the APIs' description for people and for programs.

import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { sql } from 'kysely';
import type { LogFn } from 'pino';
import { Histogram, type Registry } from 'prom-client';
import type { Database } from './db/tables.ts';
import { renderDocs } from './docs-page.ts';
import { remember } from './lib/remember.ts';

export interface OpsParts {
  db: Database;
  registry: Registry;
  isDraining(): boolean;
}

export function opsRoutes(app: FastifyInstance, { db, registry, isDraining }: OpsParts): void {
  /** The process is alive. */
  app.get('/healthz', async () => ({ status: 'ok' }));

  /** The process can do its work: send it requests. */
  app.get('/readyz', async (_request, reply) => {
    if (isDraining()) return reply.code(503).send({ status: 'draining' });
    try {
      await Promise.race([sql`select 1`.execute(db), timeout(readyMs)]);
      return { status: 'ok' };
    } catch {
      return reply.code(503).send({ status: 'database unavailable' });
    }
  });

  app.get('/metrics', async (_request, reply) => {
    reply.type(registry.contentType);
    return registry.metrics();
  });

  app.get('/openapi.json', async () => app.swagger());

  let page: string | undefined;
  app.get('/docs', async (_request, reply) => {
    page ??= renderDocs(app.swagger());
    reply.type('text/html; charset=utf-8');
    reply.header(
      'content-security-policy',
      "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    );
    return page;
  });
}

/** A database that takes longer is not there for those who ask. */
const readyMs = 2000;

const timeout = (ms: number) =>
  new Promise((_, reject) => setTimeout(reject, ms, new Error('too slow')).unref());

/** Looking changes nothing, and health checks would drown the rest: what was only read is told at debug. */
function toWriter(log: FastifyBaseLogger, method: string, status: number): LogFn {
  const isLook = (method === 'GET' || method === 'HEAD') && status < 400;
  return isLook ? log.debug.bind(log) : log.info.bind(log);
}

/** One log line and one observation per request. Routes, not addresses: those hold ids. */
export function observeRequests(app: FastifyInstance, registry: Registry): void {
  const duration = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Time from the request to the end of its answer.',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
    registers: [registry],
  });
  // What is the same for every request of a kind is found by its labels and put into text once.
  const kindOf = remember(
    ({ method, route, status }: { method: string; route: string; status: number }) =>
      `${method} ${route} ${status}`,
    ({ method, route, status }) => {
      const series = duration.labels(method, route, String(status));
      const log = app.log.child({ method, route, status });
      return { observe: series.observe.bind(series), write: toWriter(log, method, status) };
    },
  );
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown';
    const { elapsedTime: ms, statusCode: status } = reply;
    const { observe, write } = kindOf({ method: request.method, route, status });
    observe(ms / 1000);
    write({ request_id: request.id, ms }, 'request');
    done();
  });
}
