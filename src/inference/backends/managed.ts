// A backend as the registry manages it: what the router sees, and what changes without a new engine, such as its
// weight, its health and its recent statistics.

import { type Engine, EngineError } from '#inference/engine.ts';
import type { LocalEngine } from '#inference/engines/local/parent/local.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import { createPace } from '#inference/routing/pace.ts';
import type { Clock } from '#lib/clock.ts';
import type { Backend, Hold } from './backend.ts';
import { alwaysHealthy, createStatistics, type HealthRecord, type Statistics } from './health.ts';
import { type ImplausibleRecord, neverImplausible } from './implausible-counts.ts';
import { canContinue, type UpstreamSpec } from './spec.ts';

export interface ManagedBackend extends Backend {
  readonly health: HealthRecord;
  readonly statistics: Statistics;
  readonly implausible: ImplausibleRecord;
  source: 'file' | 'live' | 'weights' | 'builtin' | 'deployment';
  hold: Hold | null;
  /** Null for local engines. */
  spec: UpstreamSpec | null;
  weight: number;
  concurrency: number | null;
  continues: boolean;
  draining: boolean;
  contextWindow: number | null;
  /** When the last probe ended; null before the first. */
  checkedAt: number | null;
}

/** What a backend's requests have shown about it. */
type Records = Pick<ManagedBackend, 'health' | 'implausible'>;
type Fixed = Pick<ManagedBackend, 'name' | 'model' | 'engine' | 'kind' | 'source'>;
type LocalFixed = Fixed & { engine: LocalEngine };

export function newUpstreamBackend(
  clock: Clock,
  spec: UpstreamSpec,
  engine: Engine,
  records: Records,
): ManagedBackend {
  const { name, model, source } = spec;
  return newBackend(clock, { name, model, engine, kind: 'upstream', source }, records);
}

/** A local backend has its own queue and restarts itself. */
export function newLocalBackend(clock: Clock, fixed: LocalFixed): ManagedBackend {
  const records = { health: alwaysHealthy, implausible: neverImplausible };
  const backend = newBackend(clock, fixed, records);
  // The window depends on the memory available at each load.
  const get = () => fixed.engine.contextWindow();
  return Object.defineProperty(backend, 'contextWindow', { get, enumerable: true });
}

/** Stands for a deployment while it has no replica that takes requests. */
export function newHoldingBackend(clock: Clock, model: string, name: string): ManagedBackend {
  const records = { health: alwaysHealthy, implausible: neverImplausible };
  const fixed = { name, model, engine: createAbsentEngine(name), kind: 'upstream' } as const;
  const backend = newBackend(clock, { ...fixed, source: 'deployment' }, records);
  backend.concurrency = 0;
  // Whether the next replica can is not known.
  backend.continues = false;
  return backend;
}

function newBackend(clock: Clock, fixed: Fixed, records: Records): ManagedBackend {
  const statistics = createStatistics(clock);
  const pace = createPace(clock);
  return {
    ...fixed,
    isReplica: fixed.source === 'deployment',
    id: `${fixed.model}/${fixed.name}`,
    ...records,
    statistics,
    pace: pace.read,
    exceeded: (reported) => records.implausible.add({ reported }),
    observe(request) {
      statistics.observe(request);
      if (request.error !== null) records.health.requestFailed(request.error);
      if (request.work !== null) pace.add(request.work);
    },
    spec: null,
    weight: 1,
    concurrency: null,
    continues: true,
    draining: false,
    hold: null,
    contextWindow: null,
    checkedAt: null,
    outstanding: 0,
    taken: 0,
  };
}

/** Applies the settings that may change without a new engine. Returns the same backend. */
export function applySpec(
  backend: ManagedBackend,
  entry: CatalogEntry,
  draining: boolean,
  spec: UpstreamSpec | null = null,
): ManagedBackend {
  backend.draining = draining;
  if (spec === null) {
    backend.continues = entry.continueStreams ?? true;
    return backend;
  }
  backend.spec = spec;
  backend.source = spec.source;
  backend.weight = spec.weight;
  backend.concurrency = spec.concurrency;
  backend.continues = canContinue(spec, entry);
  return backend;
}

/** The engine of a deployment without a ready replica. No request reaches it, because its backend is always busy. */
function createAbsentEngine(name: string): Engine {
  const refuse = async () => {
    throw new EngineError('unavailable', 'No replica is ready.', { code: 'model_unavailable' });
  };
  return {
    name,
    stream: refuse,
    respond: refuse,
    countPromptTokens: async () => null,
    close: async () => {},
  };
}
