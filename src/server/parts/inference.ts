// The inference part: the catalog, the engines behind it, and what serves a request from them.

import type { RequestLimiter } from '#accounts/limits/request-limiter.ts';
import { createRequestLimiter } from '#accounts/limits/request-limiter.ts';
import type { Config } from '#config/schema.ts';
import { findKernels } from '#gpu/kernels.ts';
import { BodyRoom } from '#http/body/room.ts';
import { createBodyThread } from '#inference/apis/bodies/body-thread.ts';
import { createLargeBodies } from '#inference/apis/bodies/large-bodies.ts';
import { openBackends } from '#inference/backends/open.ts';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import {
  createGrammarThread,
  type GrammarThread,
} from '#inference/engines/local/grammar-thread/grammar-thread.ts';
import {
  borrowNoGpu,
  createGpuLeases,
  type GpuLease,
  type GpuSource,
} from '#inference/engines/local/parent/gpu-lease.ts';
import { createLocalEngine, type LocalEngine } from '#inference/engines/local/parent/local.ts';
import { createResponseThread } from '#inference/engines/upstream/plain/response-thread.ts';
import { createUpstreamEngine, probeUpstream } from '#inference/engines/upstream/upstream.ts';
import { imageBounds } from '#inference/images/remote-media.ts';
import { createCatalog } from '#inference/models/catalog.ts';
import { createMemoryBudget, type MemoryBudget } from '#inference/models/memory-budget.ts';
import { createLlama3Counter } from '#inference/models/tokens.ts';
import { Router } from '#inference/routing/router.ts';
import { createCountPrompt } from '#inference/serving/count-prompt.ts';
import { createFallbackTokenCounts } from '#inference/serving/fallback-token-count.ts';
import { createMeter, watchLoad, watchQueues } from '#inference/serving/meter.ts';
import { createRequestAccounting } from '#inference/serving/request-accounting.ts';
import { createServe } from '#inference/serving/serve.ts';
import { createTraces, type Traces } from '#inference/serving/traces.ts';
import { openWeights } from '#inference/weights/open.ts';
import type { QueueLimits } from '#lib/async/bounded-fair-queue.ts';
import type { Clock } from '#lib/clock.ts';
import {
  toBodyLimits,
  toKeepAliveMs,
  toQueueLimits,
  toRoomBounds,
} from '#server/options/limits.ts';
import {
  toBackendSettings,
  toCatalogSettings,
  toLocalOptions,
  toMemoryLimit,
  toStandIn,
  toWeightsOptions,
} from '#server/options/models.ts';
import { toTraceOptions } from '#server/options/traces.ts';
import type { Accounts, UsageParts } from './accounts.ts';
import type { Core } from './core.ts';
import { openResponses } from './responses.ts';

export type Models = Awaited<ReturnType<typeof openModels>>;

/** The catalog and every backend that can answer for a model of it. */
export async function openModels(core: Core, gpus: GpuSource | null) {
  const { config, clock, log, db, audit, metrics, seal } = core;
  const catalog = createCatalog(toCatalogSettings(config.models));
  const weights = await openWeights(
    { db, clock, log, audit, seal, catalog },
    toWeightsOptions(config),
  );
  const memory = createMemoryBudget(toMemoryLimit(config));
  const grammars = createGrammarThread(clock);
  const queue = toQueueLimits(config);
  const borrowGpu = config.inference.gpu ? createGpuLeases(gpus, log) : borrowNoGpu;
  const openLocal = (model: LocalModel) =>
    openLocalEngine(core, { memory, grammars, queue, borrowGpu }, model);
  const standInModel = toStandIn(config);
  const standIn = standInModel && openLocal(standInModel);
  if (standIn !== null) watchLoad(metrics, standIn.name, standIn.status);
  const tokens = createLlama3Counter();
  const fallbackCounts = createFallbackTokenCounts(tokens);
  const responses = createResponseThread(clock);
  const backends = await openBackends(
    {
      db,
      clock,
      log,
      audit,
      catalog,
      seal,
      metrics,
      bindings: weights.bindings,
      standIn,
      openWeights: ({ name, path }) => openLocal({ name, modelPath: path }),
      openUpstream: (options, entry) =>
        createUpstreamEngine({
          ...options,
          responses,
          countGenerated: fallbackCounts.forGenerated(entry),
        }),
      probe: probeUpstream,
    },
    toBackendSettings(config.models),
  );
  return {
    catalog,
    weights,
    grammars,
    queue,
    responses,
    standIn,
    tokens,
    fallbackCounts,
    backends,
  };
}

interface SharedByModels {
  memory: MemoryBudget;
  grammars: GrammarThread;
  queue: QueueLimits;
  borrowGpu: () => Promise<GpuLease>;
}

interface LocalModel {
  name: string;
  modelPath: string;
}

function openLocalEngine(
  { config, log }: Core,
  shared: SharedByModels,
  model: LocalModel,
): LocalEngine {
  const share = shared.memory.share(model.modelPath);
  const engine = createLocalEngine({
    ...model,
    maxMemoryBytes: share.limit,
    grammars: shared.grammars,
    queue: shared.queue,
    // The built-in model is so small that a GPU would only be kept from larger ones and from machines.
    borrowGpu: model.modelPath === builtinModel.modelPath ? borrowNoGpu : shared.borrowGpu,
    findKernels: () => findKernels(config.data_dir),
    ...toLocalOptions(config),
    onEvent(event) {
      share.see(event);
      // The native library's output is not logged: it could quote the grammar of a prompt.
      const level = event.kind === 'gpu_failed' ? 'warn' : 'info';
      if (event.kind !== 'output') log[level]({ backend: model.name, ...event }, 'model process');
    },
  });
  share.own(engine);
  return engine;
}

export type Serving = Awaited<ReturnType<typeof openServing>>;

/** What takes a request from its checked body to its response and its usage row. */
export async function openServing(
  core: Core,
  accounts: Accounts,
  usage: UsageParts,
  models: Models,
) {
  const { config, clock, log, metrics, shared } = core;
  const { catalog, backends, tokens, fallbackCounts } = models;
  const meter = createMeter(metrics);
  const router = new Router(backends.registry, clock, {
    ...models.queue,
    onRefused: meter.refused,
  });
  watchQueues(
    metrics,
    () => catalog.all().map(({ id }) => id),
    (model) => router.queued(model),
  );
  const traces = await openTraces(config);
  const accounting = createRequestAccounting(
    { meter, usageRows: usage.rows, traces, fallbackCounts },
    clock,
  );
  const limits = createRequestLimiter(accounts.limitSettings, shared.limits, meter.limited);
  const serve = createServe({
    catalog,
    clock,
    log,
    limits,
    images: {
      hosts: config.inference.image_hosts,
      room: new BodyRoom(imageBounds, 'requests that name images'),
    },
    keepAliveMs: toKeepAliveMs(config),
    counter: tokens,
    backends: backends.registry,
    router,
    events: meter,
    accounting,
  });
  const countPrompt = createCountPrompt({
    catalog,
    limits,
    backends: backends.registry,
    fallbackCounts,
    imageHosts: config.inference.image_hosts,
  });
  return {
    router,
    traces,
    accounting,
    serve,
    countPrompt,
    bodies: openBodies(config, clock, limits),
    responses: openResponses(core, serve, { catalog, limits }),
  };
}

async function openTraces(config: Config): Promise<Traces | null> {
  const options = toTraceOptions(config);
  return options === null ? null : createTraces(options);
}

function openBodies(config: Config, clock: Clock, limits: RequestLimiter) {
  const bodyLimits = toBodyLimits(config);
  const { maxBodyBytes: maxBytes, maxBodyValues: maxValues } = bodyLimits;
  /** Shared by all APIs. */
  const room = new BodyRoom(toRoomBounds(config));
  const thread = createBodyThread(clock, { maxBytes, maxValues });
  const largeBodies = createLargeBodies(limits, room, thread);
  return {
    room,
    inference: { ...bodyLimits, largeBodies, keepAliveMs: toKeepAliveMs(config) },
    close: () => thread.close(),
  };
}
