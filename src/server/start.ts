// Starts a server from a configuration: opens its parts, listens, and starts the background work. stop.ts says
// how it ends.

import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { toJoinLink } from '#accounts/people/member-routes.ts';
import type { LoadedConfig } from '#config/load.ts';
import { kindOf } from '#inference/weights/bindings.ts';
import { type Clock, systemClock } from '#lib/clock.ts';
import type { PasswordCost } from '#lib/secrets/secrets.ts';
import {
  isHttps,
  readTls,
  toAllowedHosts,
  toMetricsAccess,
  toUrl,
} from '#server/options/address.ts';
import {
  describeGpus,
  describeMachines,
  describeNetworkObstacle,
  toCloudLimits,
} from '#server/options/cloud.ts';
import { toKeyDefaults, toOutageMs, toQueueLimits } from '#server/options/limits.ts';
import { toBackendSettings, toCatalogSettings } from '#server/options/models.ts';
import { openParts, type Parts } from '#server/parts/parts.ts';
import millrace from '../../package.json' with { type: 'json' };
import { createApp } from './app.ts';
import { startChores } from './chores.ts';
import type { DashboardBuild } from './dashboard-build.ts';
import { claimDataDirectory } from './data-directory.ts';
import type { Phase } from './ops.ts';
import { stopParts } from './stop.ts';

export interface RunningServer {
  /** For example `http://127.0.0.1:8080`. */
  url: string;
  /** The first API key, only on the start that created it: it is shown once. */
  firstApiKey: string | null;
  /** Null once an owner has joined. */
  setupLink: string | null;
  database: 'SQLite' | 'PostgreSQL';
  /** The name of the model that answers for models that never had a backend. Null if there is none. */
  standIn: string | null;
  /** How machines are isolated on this host and what they can reach, in a sentence or two. */
  machines: string;
  /** Why machines of this host have no internet access, and what to do; empty if they have it. */
  networkObstacle: string;
  /** This host's GPUs and what may use them; empty if it has none. */
  gpus: string;
  /**
   * Reads models, limits of new keys and the queue's bounds from the configuration again. An invalid
   * configuration is logged, and the old one stays in effect.
   */
  reload(load: () => LoadedConfig): void;
  /**
   * Reports that it is not ready for `server.drain_notice_seconds`. Then it accepts no new work, and lets requests in
   * progress finish, up to `server.drain_seconds`.
   */
  stop(): Promise<void>;
}

export interface StartOptions {
  clock?: Clock;
  /** False only if a second server in the same data directory is intended. */
  ownsDataDir?: boolean;
  /** Less than the standard cost only in tests. */
  passwordCost?: PasswordCost;
  /** Tests share one between the servers of a process: finding its folder takes 25 ms. */
  dashboard?: DashboardBuild;
}

interface ServerState {
  phase: Phase;
  url: string;
}

export async function startServer(
  { config, presetApiKey }: LoadedConfig,
  { clock = systemClock, ownsDataDir = true, passwordCost, dashboard }: StartOptions = {},
): Promise<RunningServer> {
  const lock = claimDataDirectory(config, ownsDataDir);
  const parts = await openParts(config, clock, { passwordCost, dashboard });
  const { accounts, models, cloud } = parts;
  // First, because it takes longest.
  if (config.inference.preload) preload(parts);
  const state: ServerState = { phase: 'serving', url: '' };
  const app = await createServerApp(parts, state);
  const account = await accounts.signIn.ensureAccount();
  // Before any request, so that budgets count what an outage left in the data directory.
  await parts.usage.drainSpool().catch((error) => {
    parts.core.log.error({ err: error }, 'usage of an earlier outage is not written yet');
  });
  await parts.serving.responses.background.adopt();
  // Before any request, which the stand-in would answer otherwise.
  await parts.deployments.start(account.id, config.deployments);
  if (presetApiKey !== null) await accounts.apiKeys.preset(account.id, presetApiKey);
  await app.listen({ host: config.server.host, port: config.server.port });
  state.url = toUrl(config, app.server.address() as AddressInfo);
  // Created after listening, because they are shown once: a start that fails must not use them up.
  const firstApiKey = await accounts.apiKeys.createFirst(account.id);
  const setupToken = await accounts.invitations.renewSetup(account.id);
  startWork(parts);
  const stopChores = startChores(parts);
  return {
    url: state.url,
    firstApiKey,
    setupLink: setupToken === null ? null : toJoinLink(state.url, setupToken),
    database: config.database.url === null ? 'SQLite' : 'PostgreSQL',
    standIn: models.standIn?.name ?? null,
    machines: describeMachines(cloud.hosts.all(), cloud.ownHostId),
    networkObstacle: describeNetworkObstacle(cloud.hosts.all(), cloud.ownHostId),
    gpus: describeGpus(config, cloud.hosts.all(), cloud.ownHostId),
    reload: (load) => reload(parts, load),
    async stop() {
      state.phase = 'leaving';
      await sleep(config.server.drain_notice_seconds * 1000);
      state.phase = 'draining';
      stopChores();
      await stopParts(parts, app);
      lock?.release();
    },
  };
}

function createServerApp(parts: Parts, state: Readonly<ServerState>): Promise<FastifyInstance> {
  const { core, accounts, usage, models, serving, batches, cloud, dashboard } = parts;
  const { deployments, peers, fits } = parts;
  const { config, clock, log, metrics, shared } = core;
  const { authenticator } = accounts;
  const { catalog } = models;
  return createApp({
    log,
    trustedProxies: config.server.trusted_proxies,
    maxPerClient: config.server.connections_per_client,
    https: readTls(config),
    allowedHosts: toAllowedHosts(config),
    ops: {
      readiness: { ...core, outageMs: toOutageMs(config) },
      registry: metrics,
      state,
      metrics: toMetricsAccess(config),
    },
    accounts: {
      ...accounts,
      publicUrl: () => state.url,
      secure: isHttps(config),
      version: millrace.version,
    },
    inference: {
      authenticator,
      running: accounts.running,
      catalog,
      kindOf: (entry) => kindOf(entry, models.weights.bindings),
      backends: models.backends.registry,
      serve: serving.serve,
      countPrompt: serving.countPrompt,
      accounting: serving.accounting,
      responses: serving.responses,
      files: batches.files,
      batches: batches.batches,
      allowedOrigins: config.inference.allowed_origins,
      ...serving.bodies.inference,
    },
    cloud: {
      authenticator,
      limiter: shared.rates,
      limits: toCloudLimits(config),
      cloud,
      bodyRoom: serving.bodies.room,
    },
    weights: { authenticator, catalog, ...models.weights },
    backends: {
      authenticator,
      clock,
      catalog,
      ...models.backends,
      queuedFor: (model) => serving.router.queued(model),
    },
    usage: { authenticator, clock, ...usage },
    deployments: { authenticator, deployments, peers, fits },
    dashboard,
  });
}

function preload({ core, models }: Parts): void {
  models.standIn?.preload().catch((err) => core.log.error({ err }, 'the stand-in did not load'));
}

/** Starts the work that runs beside requests, and cleans up after an earlier process that was killed. */
function startWork({ core, usage, models, batches, cloud, dashboard }: Parts): void {
  const { log, checkpoints } = core;
  const logFailure = (message: string) => (error: unknown) => log.error({ err: error }, message);
  dashboard.start();
  cloud.reconciler.start();
  models.weights.start();
  batches.runner.start();
  usage.rows.sweep().catch(logFailure('requests of an earlier process were not closed'));
  // At the start as well as every hour: some servers never run for an hour.
  usage.retention.sweep().catch(logFailure('old usage was not deleted'));
  checkpoints?.start();
}

function reload(
  { core, accounts, models, serving, deployments }: Parts,
  load: () => LoadedConfig,
): void {
  const { log } = core;
  try {
    const { config } = load();
    models.catalog.replace(toCatalogSettings(config.models));
    models.backends.configure(toBackendSettings(config.models));
    accounts.limitSettings.configure({ keyDefaults: toKeyDefaults(config) });
    Object.assign(models.queue, toQueueLimits(config));
    serving.router.configure(models.queue);
    deployments.configure(config.deployments).catch((err) => {
      log.error({ err }, 'deployments of the configuration were not reloaded');
    });
    log.info('configuration reloaded: models, deployments, limits of new keys, queue');
  } catch (error) {
    log.error({ err: error }, 'configuration not reloaded; the old one stays in effect');
  }
}
