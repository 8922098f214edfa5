// Opens the parts of this folder: the registry, the live backends of the database, and the prober.

import type { FastifyBaseLogger } from 'fastify';
import type { Registry } from 'prom-client';
import type { Audit } from '#accounts/audit/audit.ts';
import type { Database } from '#db/tables/tables.ts';
import { type LiveBackends, openLiveBackends } from '#inference/backends/live/live.ts';
import { LiveRows } from '#inference/backends/live/live-rows.ts';
import type { LocalEngine } from '#inference/engines/local/parent/local.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import type { Bindings, ServingWeights } from '#inference/weights/bindings.ts';
import type { Clock } from '#lib/clock.ts';
import type { Seal } from '#lib/secrets/seal.ts';
import type { HealthSettings } from './health.ts';
import { watchBackends } from './metrics.ts';
import { createProber } from './prober.ts';
import { BackendRegistry } from './registry.ts';
import type { OpenUpstream, ProbeUpstream, UpstreamSpec } from './spec.ts';

/** Backend settings of the configuration. */
export interface BackendSettings {
  readonly specs: readonly UpstreamSpec[];
  readonly health: HealthSettings;
  readonly probeMs: number;
}

export interface Backends {
  readonly registry: BackendRegistry;
  readonly live: LiveBackends;
  readonly probe: ProbeUpstream;
  /** Applies a new configuration. Running requests stay where they are. */
  configure(settings: BackendSettings): void;
  /** Runs the probes that are due. Must be called about once a second. */
  tick(): Promise<void>;
  close(): Promise<void>;
}

export interface BackendsDeps {
  db: Database;
  clock: Clock;
  log: FastifyBaseLogger;
  audit: Audit;
  catalog: Catalog;
  seal: Seal;
  metrics: Registry;
  bindings: Bindings;
  standIn: LocalEngine | null;
  openWeights(weights: ServingWeights): LocalEngine;
  openUpstream: OpenUpstream;
  probe: ProbeUpstream;
}

export async function openBackends(
  deps: BackendsDeps,
  settings: BackendSettings,
): Promise<Backends> {
  const { db, clock, log, audit, catalog, seal, metrics, probe } = deps;
  let { probeMs } = settings;
  const registry = new BackendRegistry(deps, settings);
  const rows = new LiveRows(db, clock, seal);
  const live = await openLiveBackends({ db, log, audit, catalog, rows, registry });
  const all = () => registry.all();
  const prober = createProber(clock, { backends: all, probe, everyMs: () => probeMs });
  watchBackends(metrics, all);
  return {
    registry,
    live,
    probe,
    configure(changed) {
      probeMs = changed.probeMs;
      registry.configure(changed.specs, changed.health);
    },
    tick: prober.tick,
    async close() {
      prober.stop();
      await registry.close();
    },
  };
}
