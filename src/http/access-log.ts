// Writes one log line and one observation per request. They name the route and not the URL, which may hold ids.

import type { FastifyBaseLogger } from 'fastify';
import type { LogFn } from 'pino';
import type { Registry } from 'prom-client';
import { memoize } from '#lib/memory/memoize.ts';
import { histogram } from '#lib/telemetry/series.ts';

export interface ObservedRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly id: string;
  readonly ms: number;
}

/** Called for each request once its response is complete. */
export type ObserveRequest = (request: ObservedRequest) => void;

export function createRequestObserver(log: FastifyBaseLogger, registry: Registry): ObserveRequest {
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
  return (request) => {
    const { series, write } = kindOf(request);
    series.observe(request.ms / 1000);
    write({ request_id: request.id, ms: request.ms }, 'request');
  };
}

/** Successful reads are logged at debug: they change nothing, and health checks would drown the rest. */
function toWriter(log: FastifyBaseLogger, method: string, status: number): LogFn {
  const isRead = (method === 'GET' || method === 'HEAD') && status < 400;
  return isRead ? log.debug.bind(log) : log.info.bind(log);
}
