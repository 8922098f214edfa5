// The composition root: a Config becomes a database, the parts that stand on it, and a listening app.
// Start and stop order are here and nowhere else.

import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { createApiKeys } from '#accounts/api-keys.ts';
import { createAudit } from '#accounts/audit.ts';
import { createAuditLog } from '#accounts/audit-log.ts';
import { createAuthenticator } from '#accounts/authenticate.ts';
import { createInvitations } from '#accounts/invitations.ts';
import { createLimits } from '#accounts/limits/limits.ts';
import { createLimitSettings } from '#accounts/limits/settings.ts';
import { createSpendReport } from '#accounts/limits/spend-report.ts';
import { createMembers } from '#accounts/members.ts';
import { toJoinLink } from '#accounts/routes.ts';
import { createSessions } from '#accounts/sessions.ts';
import { createSignIn } from '#accounts/sign-in.ts';
import { createThrottle } from '#accounts/throttle.ts';
import { createUsageRequests } from '#accounts/usage/requests.ts';
import { createUsageRetention } from '#accounts/usage/retention.ts';
import { createUsageSummaries } from '#accounts/usage/summaries.ts';
import { createUsage } from '#accounts/usage/usage.ts';
import { watchUsage } from '#accounts/usage/watch.ts';
import { createBatch } from '#accounts/usage/writer.ts';
import { createBatchThread } from '#accounts/usage/writer-thread.ts';
import { createCloud } from '#cloud/cloud.ts';
import { createDriver } from '#cloud/drivers/index.ts';
import { createHostDrivers } from '#cloud/hosts/open-drivers.ts';
import { readHostId } from '#cloud/hosts/own-host.ts';
import type { LoadedConfig } from '#config/load.ts';
import type { Config } from '#config/schema.ts';
import { createCheckpoints, emptyLog } from '#db/checkpoints.ts';
import { openDatabase, sqliteFile } from '#db/open.ts';
import { openBackends } from '#inference/backends/open.ts';
import { createGrammarThread } from '#inference/engines/local/grammar/grammar-thread.ts';
import { createLocalEngine, type LocalEngine } from '#inference/engines/local/parent/local.ts';
import { createResponseThread } from '#inference/engines/upstream/response-thread.ts';
import { createUpstreamEngine, probeUpstream } from '#inference/engines/upstream/upstream.ts';
import { createCatalog } from '#inference/models/catalog.ts';
import { createMemoryBudget } from '#inference/models/memory-budget.ts';
import { createLlama3Counter } from '#inference/models/tokens.ts';
import { createRouter } from '#inference/routing/router.ts';
import { createAttempts } from '#inference/serving/attempt.ts';
import { createMissingCounts } from '#inference/serving/fallback-token-count.ts';
import { createMeter, watchLoad, watchQueues } from '#inference/serving/meter.ts';
import { createPlanner } from '#inference/serving/plan.ts';
import { createRecordings } from '#inference/serving/request-accounting.ts';
import { createServe } from '#inference/serving/serve.ts';
import { createTraces, type Traces } from '#inference/serving/traces.ts';
import { openWeights } from '#inference/weights/open.ts';
import { type Clock, systemClock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { createSeal, readSealKey } from '#lib/secrets/seal.ts';
import { createLogSink } from '#lib/telemetry/log-sink.ts';
import { isHttps, readTls, toUrl } from '#server/options/address.ts';
import { describeMachines, toCloudLimits, toCloudOptions } from '#server/options/cloud.ts';
import {
  toAccountDefaults,
  toKeyDefaults,
  toOthers,
  toQueueLimits,
  toUsageRetention,
} from '#server/options/limits.ts';
import { toMemoryLimit, toStandIn } from '#server/options/local-models.ts';
import { toBackendSettings, toCatalogSettings } from '#server/options/models.ts';
import { createApp } from './app.ts';
import { openBodies } from './bodies.ts';
import { claimDataDirectory } from './claimed-data.ts';
import { createDashboardBuild } from './dashboard-build.ts';
import { drain } from './drain.ts';
import { openSharedState } from './shared-state.ts';

export interface RunningServer {
  /** e.g. `http://127.0.0.1:8080`. */
  url: string;
  /** Shown once: the first API key, only on the start that made it. */
  firstApiKey: string | null;
  /** Null once somebody has joined. */
  setupLink: string | null;
  database: 'SQLite' | 'PostgreSQL';
  /** Which model answers for those without a backend. */
  standIn: string;
  /** How machines are kept apart and what they reach, in a sentence or two. */
  machines: string;
  /**
   * Reads models, limits of new keys and the queue's bounds of the configuration again. A wrong one is logged,
   * and the old one stays.
   */
  reload(load: () => LoadedConfig): void;
  /** No new work; what runs may finish, up to the configured time. */
  stop(): Promise<void>;
}

export async function startServer(
  { config, presetApiKey }: LoadedConfig,
  clock: Clock = systemClock,
  /** Off only where a second server in the same directory is the point. */
  { alone = true }: { alone?: boolean } = {},
): Promise<RunningServer> {
  const lock = claimDataDirectory(config, alone);
  const sink = createLogSink();
  const log = pino({ level: config.log.level, base: null }, sink);
  const { url: databaseUrl, pool_size: poolSize } = config.database;
  const db = await openDatabase({ url: databaseUrl, poolSize, dataDir: config.data_dir }, log);

  const audit = createAudit(clock);
  const processId = newId();
  const limitSettings = createLimitSettings(db, clock, audit, {
    keyDefaults: toKeyDefaults(config),
    others: toOthers(config, processId),
  });
  const apiKeys = createApiKeys(db, clock, audit, limitSettings);
  const throttle = createThrottle(db, clock);
  const sessions = createSessions(db, clock, audit, { sessionDays: config.accounts.session_days });
  const invitations = createInvitations(db, clock, audit, {
    invitationDays: config.accounts.invitation_days,
  });
  const signIn = createSignIn(
    db,
    clock,
    { audit, sessions, throttle, invitations },
    {
      loginAttempts: config.accounts.login_attempts,
      accountLimits: toAccountDefaults(config),
    },
  );
  const authenticator = createAuthenticator(apiKeys, sessions);
  const catalog = createCatalog(toCatalogSettings(config.models));
  const weights = await openWeights(
    { db, clock, log, audit, catalog },
    {
      dataDir: config.data_dir,
      hubUrl: config.models.hub_url,
      hubToken: config.models.hub_token,
      concurrency: config.models.pull_concurrency,
      diskReserveBytes: config.models.disk_reserve_gib * 2 ** 30,
    },
  );
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const shared = await openSharedState(config.redis.url, clock, { log, registry });
  const dashboard = createDashboardBuild(log);
  const memory = createMemoryBudget(toMemoryLimit(config));
  const grammars = createGrammarThread(clock);
  const responses = createResponseThread(clock);
  const standIn = openLocalEngine(toStandIn(config));
  const counter = createLlama3Counter();
  const missing = createMissingCounts(counter);
  const backends = await openBackends(
    {
      db,
      clock,
      log,
      audit,
      catalog,
      seal: createSeal(() => readSealKey(config.secret_key, config.data_dir)),
      metrics: registry,
      bindings: weights.bindings,
      standIn,
      openWeights: ({ name, path }) => openLocalEngine({ name, modelPath: path }),
      openUpstream: (options, entry) =>
        createUpstreamEngine({
          ...options,
          responses,
          countGenerated: missing.forGenerated(entry),
        }),
      probe: probeUpstream,
    },
    toBackendSettings(config.models),
  );
  watchLoad(registry, standIn.name, standIn.status);
  const meter = createMeter(registry);
  const router = createRouter(backends.registry, clock, {
    ...toQueueLimits(config),
    onRefused: meter.refused,
  });
  watchQueues(registry, () => catalog.all().map(({ id }) => id), router.queued);
  const sqlite = config.database.url === null ? sqliteFile(config.data_dir) : null;
  const inProcess = createBatch(db);
  const batch = sqlite === null ? inProcess : createBatchThread(sqlite, inProcess);
  const usage = createUsage(db, clock, { log, batch }, { alone: sqlite !== null, processId });
  const checkpoints = sqlite === null ? null : createCheckpoints(sqlite, log);
  const usageRetention = createUsageRetention(db, clock, toUsageRetention(config));
  watchUsage(registry, usage.status);
  const traces = await openTraces(config);
  const recordings = createRecordings({ meter, usageRows: usage, traces, missing }, clock);

  function openLocalEngine(model: { name: string; modelPath: string }): LocalEngine {
    const share = memory.share(model.modelPath);
    const engine = createLocalEngine({
      ...model,
      memoryLimit: share.limit,
      grammars,
      gpu: config.inference.gpu ? 'auto' : false,
      idleMs: config.inference.idle_minutes * 60_000,
      threads: config.inference.threads,
      onEvent(event) {
        share.see(event);
        // What the native library prints could quote a prompt's grammar.
        const level = event.kind === 'gpu_failed' ? 'warn' : 'info';
        if (event.kind !== 'output') log[level]({ backend: model.name, ...event }, 'model process');
      },
    });
    share.own(engine);
    return engine;
  }

  const certificateFiles = {
    certificate: config.cloud.client_certificate,
    key: config.cloud.client_key,
  };
  const own = await openOwnHost();
  const drivers = createHostDrivers(own, async () => {
    const [{ createEndpoints }, { loadClientCertificate }] = await Promise.all([
      import('#cloud/hosts/endpoints.ts'),
      import('#cloud/hosts/client-certificate.ts'),
    ]);
    const { id } = await db.selectFrom('installation').selectAll().executeTakeFirstOrThrow();
    return createEndpoints({
      installationId: id,
      certificate: () => loadClientCertificate(config.data_dir, certificateFiles, clock.now()),
      log: (message) => log.info({ driver: 'incus' }, message),
    });
  });
  const cloud = await createCloud(
    db,
    clock,
    { audit, drivers, log },
    toCloudOptions(config, own?.hostId ?? null),
  );

  async function openOwnHost() {
    const { driver: name, isolation } = config.cloud;
    if (name === 'none') return null;
    const driver = await createDriver(name, {
      dataDir: config.data_dir,
      isolation,
      log: (message) => log.info({ driver: name }, message),
    });
    return { hostId: readHostId(config.data_dir), driver };
  }

  const limits = createLimits(limitSettings, shared.limits, meter.limited);
  const bodies = openBodies(config, limits);
  let draining = false;
  let url = '';

  const app = await createApp({
    log,
    trustedProxies: config.server.trusted_proxies,
    https: readTls(config),
    ops: { db, registry, isDraining: () => draining },
    accounts: {
      authenticator,
      apiKeys,
      limitSettings,
      spendReport: createSpendReport(db, clock),
      auditLog: createAuditLog(db),
      invitations,
      members: createMembers(db, audit, sessions),
      sessions,
      signIn,
      publicUrl: () => url,
      secure: isHttps(config),
    },
    inference: {
      authenticator,
      catalog,
      serve: createServe({
        catalog,
        clock,
        log,
        limits,
        plan: createPlanner(catalog, counter, backends.registry),
        attempts: createAttempts(backends.registry, router, meter),
        recordings,
      }),
      recordings,
      ...bodies.inference,
    },
    cloud: {
      authenticator,
      limiter: shared.rates,
      limits: toCloudLimits(config),
      cloud,
      bodyRoom: bodies.room,
    },
    weights: { authenticator, catalog, ...weights },
    backends: { authenticator, clock, catalog, ...backends, queuedFor: router.queued },
    usage: {
      authenticator,
      clock,
      summaries: createUsageSummaries(db),
      requests: createUsageRequests(db),
    },
    dashboard,
  });

  const account = await signIn.ensureAccount();
  if (presetApiKey !== null) await apiKeys.preset(account.id, presetApiKey);
  await app.listen({ host: config.server.host, port: config.server.port });
  url = toUrl(config, app.server.address() as AddressInfo);
  // Only now, because they are shown once: a start that fails must not use them up.
  const firstApiKey = await apiKeys.createFirst(account.id);
  const setupToken = await invitations.renewSetup(account.id);
  dashboard.start();
  if (config.inference.preload) {
    standIn.preload().catch((error) => log.error({ err: error }, 'the stand-in did not load'));
  }
  cloud.reconciler.start();
  weights.start();
  usage.sweep().catch((error) => log.error({ err: error }, 'usage left behind was not closed'));
  // Not only by the hour: some servers are never up for one.
  usageRetention.sweep().catch((error) => log.error({ err: error }, 'old usage was not deleted'));
  checkpoints?.start();
  const chores = [
    every(5_000, () => weights.tidy()),
    every(2_000, () => backends.live.refresh()),
    every(1_000, () => backends.tick()),
    every(2_000, () => cloud.hosts.look()),
    every(60_000, () => cloud.strangers.sweep()),
    every(5_000, () => apiKeys.flushLastUsed()),
    every(600_000, () => throttle.sweep()),
    every(3_600_000, () => sessions.sweep()),
    every(60_000, () => usage.sweep()),
    every(3_600_000, () => usageRetention.sweep()),
  ];

  /** A background chore that fails is logged and tried again at its next turn. */
  function every(ms: number, chore: () => Promise<void>): NodeJS.Timeout {
    return setInterval(() => {
      chore().catch((error) => log.error({ err: error }, 'background work failed'));
    }, ms).unref();
  }

  function reload(load: () => LoadedConfig): void {
    try {
      const { config: next } = load();
      const { models } = next;
      catalog.replace(toCatalogSettings(models));
      backends.configure(toBackendSettings(models));
      limitSettings.configure({ keyDefaults: toKeyDefaults(next) });
      router.configure(toQueueLimits(next));
      log.info('models, limits and the queue of the configuration were read again');
    } catch (error) {
      log.error({ err: error }, 'the configuration was not read again, the old one stays');
    }
  }

  async function endWork() {
    router.close();
    await backends.close().catch((error) => log.error({ err: error }, 'a backend did not close'));
  }

  async function stop() {
    draining = true;
    for (const chore of chores) clearInterval(chore);
    await weights.stop();
    await drain(app, { drainMs: config.server.drain_seconds * 1000, cutOff: () => void endWork() });
    await endWork();
    await usage.stop();
    await counter.close();
    await grammars.close();
    await responses.close();
    await bodies.close();
    await traces?.close().catch((error) => log.warn({ err: error }, 'the last traces are lost'));
    await shared.close();
    await cloud.reconciler.stop();
    await cloud.hosts.close();
    dashboard.stop();
    await apiKeys
      .flushLastUsed()
      .catch((error) => log.error({ err: error }, 'the last uses of keys are lost'));
    await checkpoints?.close();
    await db.destroy();
    if (sqlite !== null) emptyLog(sqlite);
    lock?.release();
    sink.close();
  }

  return {
    url,
    firstApiKey,
    setupLink: setupToken === null ? null : toJoinLink(url, setupToken),
    database: config.database.url === null ? 'SQLite' : 'PostgreSQL',
    standIn: standIn.name,
    machines: describeMachines(cloud.hosts.all(), own?.hostId ?? null),
    reload,
    stop,
  };
}

async function openTraces({ telemetry }: Config): Promise<Traces | null> {
  const { otlp_url: url, otlp_headers: headers, sample_ratio: sampleRatio } = telemetry;
  return url === null ? null : createTraces({ url, headers, sampleRatio });
}
