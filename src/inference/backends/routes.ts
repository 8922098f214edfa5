// The dashboard's and the CLI's endpoints for backends: what serves each model and how it does, and changes
// to that without a restart.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { type Authenticator, requireRole } from '#accounts/authenticate.ts';
import { accountsErrorFormat } from '#accounts/errors.ts';
import { slicePage, toPageOptions } from '#accounts/paging.ts';
import { PageQuery } from '#accounts/schema.ts';
import { applyErrorFormat } from '#http/error-format.ts';
import type { LiveBackends } from '#inference/backends/live/live.ts';
import type { LiveValues } from '#inference/backends/live/live-rows.ts';
import { type Catalog, getModel } from '#inference/models/catalog.ts';
import { findFastest } from '#inference/routing/choose-backend.ts';
import { slownessOf } from '#inference/routing/pace.ts';
import type { Clock } from '#lib/clock.ts';
import { invalidBody } from '#lib/errors.ts';
import { checkUpstream } from './check.ts';
import type { ManagedBackend } from './managed.ts';
import type { BackendRegistry } from './registry.ts';
import {
  BackendChange,
  BackendParams,
  type BackendView,
  ModelParams,
  NewBackend,
} from './schema.ts';
import type { ProbeUpstream, UpstreamSpec } from './spec.ts';

export interface BackendParts {
  authenticator: Authenticator;
  clock: Clock;
  catalog: Catalog;
  registry: BackendRegistry;
  live: LiveBackends;
  probe: ProbeUpstream;
  /** Requests that wait for any backend of the model. */
  queuedFor(model: string): number;
}

export function backendRoutes(scope: FastifyInstance, parts: BackendParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { catalog, registry, live } = parts;
  applyErrorFormat(scope, accountsErrorFormat, { maxBytes: 262_144, anyContentType: false });
  parts.authenticator.requireSession(scope);
  const toView = (backend: ManagedBackend) => toBackendView(backend, parts);

  app.get('/', { schema: { querystring: PageQuery } }, async (request) => {
    const { data, next } = slicePage(registry.all(), toPageOptions(request.query));
    return { data: data.map(toView), next };
  });
  app.post('/', { schema: { body: NewBackend } }, async (request) =>
    toView(await live.add(requireRole(request, 'owner'), parseSpec(request.body))),
  );
  app.post('/check', { schema: { body: NewBackend } }, async (request) => {
    requireRole(request, 'owner');
    getModel(catalog, request.body.model);
    return checkUpstream(parts.probe, parseSpec(request.body));
  });
  app.patch(
    '/:model/:name',
    { schema: { params: BackendParams, body: BackendChange } },
    async (request) => {
      const session = requireRole(request, 'owner');
      return toView(await live.change(session, request.params, toWishes(request.body)));
    },
  );
  app.post('/:model/stand-in', { schema: { params: ModelParams } }, async (request) => {
    await live.letStandIn(requireRole(request, 'owner'), request.params.model);
    return { ok: true };
  });
  app.delete('/:model/:name', { schema: { params: BackendParams } }, async (request) => {
    await live.remove(requireRole(request, 'owner'), request.params);
    return { ok: true };
  });
}

function parseSpec(body: NewBackend): UpstreamSpec {
  if (!URL.canParse(body.url)) throw invalidBody('url is not a web address.', 'url');
  const { connect_ms, first_byte_ms, idle_ms } = body.timeouts ?? {};
  return {
    source: 'live',
    model: body.model,
    name: body.name,
    url: body.url,
    apiKey: body.api_key ?? null,
    upstreamModel: body.upstream_model ?? body.model,
    server: body.server ?? 'openai',
    headers: body.headers ?? {},
    weight: body.weight ?? 1,
    concurrency: body.concurrency ?? null,
    timeouts: {
      connectMs: connect_ms ?? 2_000,
      firstByteMs: first_byte_ms ?? 120_000,
      idleMs: idle_ms ?? 60_000,
    },
    continueStreams: body.continue_streams ?? null,
  };
}

function toWishes({ draining, weight, concurrency }: BackendChange) {
  const values: LiveValues = {
    ...(weight == null ? {} : { weight }),
    // Null is a wish too: no limit.
    ...(concurrency === undefined ? {} : { concurrency }),
  };
  return { ...values, draining: draining ?? undefined };
}

function toSlowness(backend: ManagedBackend, registry: BackendRegistry): number | null {
  const fastest = findFastest(registry.forModel(backend.model));
  const slowness = slownessOf(backend.pace(), fastest);
  return slowness === 1 ? null : Math.round(slowness * 10) / 10;
}

function toBackendView(
  backend: ManagedBackend,
  { clock, queuedFor, registry }: BackendParts,
): BackendView {
  const { spec, health, statistics, implausible, checkedAt } = backend;
  const retryMs = health.retryAfterMs();
  return {
    id: backend.id,
    model: backend.model,
    name: backend.name,
    kind: backend.kind,
    source: backend.source,
    url: spec?.url ?? null,
    upstream_model: spec?.upstreamModel ?? null,
    server: spec?.server ?? null,
    weight: backend.weight,
    concurrency: backend.concurrency,
    draining: backend.draining,
    health: health.state(),
    reason: backend.hold?.obstacle ?? health.reason(),
    retry_at: retryMs === 0 ? null : new Date(clock.now() + retryMs).toISOString(),
    checked_at: checkedAt === null ? null : new Date(checkedAt).toISOString(),
    outstanding: backend.outstanding,
    queued: queuedFor(backend.model),
    requests_per_second: Math.round(statistics.requestsPerSecond() * 1000) / 1000,
    first_token_ms: statistics.firstTokenMs(),
    slowness: toSlowness(backend, registry),
    requests: statistics.requests(),
    errors: statistics.errors(),
    failing: health.lastFailure() !== null,
    last_error: health.lastFailure() ?? statistics.lastError(),
    implausible_counts: implausible.recent(),
  };
}
