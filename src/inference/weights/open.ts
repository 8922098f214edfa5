// Assembles the parts of this folder: the disk, the hub, the database, and the runner between them.

import { resolve } from 'node:path';
import type { FastifyBaseLogger } from 'fastify';
import type { Audit } from '#accounts/audit/audit.ts';
import type { Database } from '#db/tables/tables.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import { createDownloads } from '#inference/weights/download/download-thread.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import type { Seal } from '#lib/secrets/seal.ts';
import { type Bindings, createBindings } from './bindings.ts';
import { createFetches, type Fetches } from './fetches.ts';
import { Hub } from './hub.ts';
import { PullRows } from './pull-rows.ts';
import { Pulls } from './pulls.ts';
import { Runner, type RunnerOptions } from './runner.ts';
import { openStore, type Store } from './store.ts';

export interface LocalWeights {
  readonly store: Store;
  /** Tells a router which weights serve a model: `find` looks them up, and `subscribe` reports changes. */
  readonly bindings: Bindings;
  readonly pulls: Pulls;
  /** Weights for the engines of deployments. */
  readonly fetches: Fetches;
  /** Resumes pulls that an earlier process left. */
  start(): void;
  /** Picks up changes by other processes on this database, and deletes old pulls. */
  tidy(): Promise<void>;
  isStopping(): boolean;
  stop(): Promise<void>;
}

export interface WeightsOptions extends Omit<RunnerOptions, 'folder'> {
  readonly dataDir: string;
  readonly hubUrl: string;
  readonly hubToken: string | null;
  /** How long a silent process keeps the lease on its pulls. */
  readonly leaseMs?: number;
}

export interface WeightsParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: FastifyBaseLogger;
  readonly audit: Audit;
  readonly seal: Seal;
  readonly catalog: Catalog;
}

export async function openWeights(
  deps: WeightsParts,
  options: WeightsOptions,
): Promise<LocalWeights> {
  const { db, clock, log, audit, seal, catalog } = deps;
  const folder = resolve(options.dataDir, 'models');
  const store = await openStore(folder);
  const hubOptions = { url: options.hubUrl, token: options.hubToken };
  const hub = new Hub(hubOptions);
  const downloads = createDownloads(hubOptions);
  const rows = new PullRows(db, clock, {
    storeId: store.id,
    runner: newId(),
    leaseMs: options.leaseMs ?? 4_000,
    seal,
  });
  const bindings = await createBindings(db, clock, store);
  let tidying: Promise<void> | undefined;
  const runner = new Runner({ db, log, downloads, store, rows, bindings }, { ...options, folder });
  const pulls = new Pulls({ db, audit, catalog, hub, store, rows, bindings, runner });
  return {
    store,
    bindings,
    pulls,
    fetches: createFetches({ store, pulls, rows, runner }),
    start: () => runner.wake(),
    tidy() {
      tidying ??= Promise.all([bindings.refresh(), rows.sweep()])
        .then(() => {})
        .finally(() => {
          tidying = undefined;
        });
      return tidying;
    },
    isStopping: () => runner.isStopping,
    async stop() {
      await runner.stop();
      await hub.close();
    },
  };
}
