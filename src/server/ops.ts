// Endpoints for operators: health, metrics, and the API description for programs.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { collectDefaultMetrics, type Registry } from 'prom-client';
import { readKey } from '#accounts/authenticate.ts';
import { clientAddress } from '#http/request-head.ts';
import { forbidden, Refusal } from '#lib/errors.ts';
import { equalHashes, hashToken } from '#lib/secrets/secrets.ts';
import { renderDocument, toCloudOnly } from '#server/openapi/document.ts';
import { checkReadiness, type ReadinessParts } from './readiness.ts';

/**
 * What the server does with requests. While it is `leaving` it serves them, but is not ready, so that a load balancer
 * stops sending them. While it is `draining` it refuses them.
 */
export type Phase = 'serving' | 'leaving' | 'draining';

export interface OpsParts {
  readiness: ReadinessParts;
  registry: Registry;
  /** Changes while the server stops. */
  readonly state: { readonly phase: Phase };
  metrics: MetricsAccess;
}

/** Who may read /metrics. Each condition that is set must hold. */
export interface MetricsAccess {
  /** SHA-256 of the key that must be sent; null if none is needed. */
  keyHash: string | null;
  /** Null if any address may. */
  isAllowed: ((address: string) => boolean) | null;
}

export function opsRoutes(
  app: FastifyInstance,
  { readiness, registry, state, metrics }: OpsParts,
): void {
  /** Liveness: the process is running. */
  app.get('/healthz', async () => ({ status: 'ok' }));

  /** Readiness: the process can serve requests. */
  app.get('/readyz', async (_request, reply) => {
    if (state.phase !== 'serving') return reply.code(503).send({ status: 'draining' });
    const { status, isReady } = await checkReadiness(readiness);
    return reply.code(isReady ? 200 : 503).send({ status });
  });

  let hasProcessMetrics = false;
  app.get('/metrics', async (request, reply) => {
    checkMetricsAccess(metrics, request);
    // From the first request for them: to watch the event loop, the process wakes a hundred times
    // per second, which takes two fifths of the CPU of an idle server (bench/deployments.ts 0).
    if (!hasProcessMetrics) collectProcessMetrics(registry);
    hasProcessMetrics = true;
    reply.type(registry.contentType);
    return registry.metrics();
  });

  describeAt(app, '', () => app.swagger());
  // Clients of the original cloud look for its description here.
  describeAt(app, '/api/v1', () => toCloudOnly(app.swagger()));
}

/** Gauges whose names end as those of counters do, which `promtool` refuses. The same by type have other names. */
const misnamed = ['handles', 'requests', 'resources'].map((what) => `nodejs_active_${what}_total`);

function collectProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
  for (const name of misnamed) registry.removeSingleMetric(name);
}

/** Serves the API description for programs. dashboard.ts serves it for people, at `docs`. */
function describeAt(app: FastifyInstance, prefix: string, describe: () => object): void {
  let text: string | undefined;
  app.get(`${prefix}/openapi.json`, async (request, reply) => {
    reply.type('application/json; charset=utf-8');
    // Anyone may ask for it, and writing it as text takes 20 ms.
    text ??= JSON.stringify(describe());
    return renderDocument(text, toOrigin(request));
  });
}

/** The base URL that the client used, as far as it is a valid one. */
function toOrigin({ protocol, host }: FastifyRequest): string {
  const url = `${protocol}://${host}`;
  return URL.canParse(url) ? new URL(url).origin : '';
}

function checkMetricsAccess({ keyHash, isAllowed }: MetricsAccess, request: FastifyRequest): void {
  if (isAllowed?.(clientAddress(request)) === false) {
    throw forbidden(
      'Your address may not read the metrics. Add it to server.metrics_addresses to allow it.',
    );
  }
  if (keyHash === null) return;
  const key = readKey(request.headers.authorization);
  if (key !== null && equalHashes(hashToken(key), keyHash)) return;
  // Not `no_credentials`: the dashboard's format replaces its message by one about signing in.
  throw new Refusal(
    'invalid_credentials',
    `${key === null ? 'The metrics need a key' : 'This is not the key of the metrics'}. Send the value of server.metrics_key as "Authorization: Bearer <key>".`,
  );
}
