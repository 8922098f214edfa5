// The backends of every model, put together from the configuration, what was added live, weights on this
// machine and the stand-in. Made anew at each change and read on every request, so reading is one look-up.

import type { FastifyBaseLogger } from 'fastify';
import type { LocalEngine } from '#inference/engines/local/parent/local.ts';
import type { Catalog, CatalogEntry } from '#inference/models/catalog.ts';
import type { Bindings, ServingWeights } from '#inference/weights/bindings.ts';
import type { Clock } from '#lib/clock.ts';
import type { BackendList } from './backend.ts';
import { createHealth, type HealthSettings } from './health.ts';
import { createImplausibleRecord } from './implausible-counts.ts';
import { describe, type ManagedBackend, newLocalBackend, newUpstreamBackend } from './managed.ts';
import { createRetirement, type RetirementOptions } from './retirement.ts';
import { type OpenUpstream, toUpstreamOptions, type UpstreamSpec } from './spec.ts';
import { createWeightsEngines, versionOf } from './weights-engines.ts';

export interface BackendRegistry extends BackendList {
  forModel(model: string): readonly ManagedBackend[];
  /** Of every model, in the catalog's order; those that are being removed come last. */
  all(): ManagedBackend[];
  find(model: string, name: string): ManagedBackend | undefined;
  /** What the configuration says; also to be called when the catalog has changed. */
  configure(specs: readonly UpstreamSpec[], health: HealthSettings): void;
  /** What the database says. Drained ones by `<model>/<name>`. */
  setLive(specs: readonly UpstreamSpec[], drained: ReadonlySet<string>): void;
}

export interface RegistryParts {
  clock: Clock;
  log: FastifyBaseLogger;
  catalog: Catalog;
  bindings: Bindings;
  standIn: LocalEngine;
  openWeights(weights: ServingWeights): LocalEngine;
  openUpstream: OpenUpstream;
}

export function createRegistry(
  { clock, log, catalog, bindings, standIn, openWeights, openUpstream }: RegistryParts,
  configured: { specs: readonly UpstreamSpec[]; health: HealthSettings },
  options: RetirementOptions = {},
): BackendRegistry {
  const retirement = createRetirement(clock, options);
  const weightsEngines = createWeightsEngines(bindings, openWeights, retirement);
  let fileSpecs = configured.specs;
  let healthSettings = configured.health;
  let liveSpecs: readonly UpstreamSpec[] = [];
  let drained: ReadonlySet<string> = new Set();
  let lists: ReadonlyMap<string, readonly ManagedBackend[]> = new Map();
  /** By what makes it this backend and no other: a change of that is a new one. */
  let known: ReadonlyMap<string, ManagedBackend> = new Map();
  const leaving = new Set<ManagedBackend>();

  function rebuild(): void {
    const kept = new Map<string, ManagedBackend>();
    const keep = (key: string, make: () => ManagedBackend) => {
      const backend = known.get(key) ?? make();
      kept.set(key, backend);
      return backend;
    };
    lists = new Map(catalog.all().map((entry) => [entry.id, listFor(entry, keep)]));
    const gone = [...known].filter(([key]) => !kept.has(key)).map(([, backend]) => backend);
    known = kept;
    for (const backend of gone) if (backend.kind === 'upstream') retire(backend);
    weightsEngines.prune();
  }

  type Keep = (key: string, make: () => ManagedBackend) => ManagedBackend;

  /** Those of the file in its order, then live ones, then weights; the stand-in where there is nothing. */
  function listFor(entry: CatalogEntry, keep: Keep): readonly ManagedBackend[] {
    const ofFile = fileSpecs.filter(({ model }) => model === entry.id);
    const names = new Set(ofFile.map(({ name }) => name));
    // A name that the file took since: the file's is meant.
    const live = liveSpecs.filter(({ model, name }) => model === entry.id && !names.has(name));
    const backends = [...ofFile, ...live].map((spec) =>
      describe(
        keep(`${entry.id} upstream ${fingerprint(spec)}`, () => openBackend(spec, entry)),
        entry,
        isDrained(entry.id, spec.name),
        spec,
      ),
    );
    const weights = bindings.find(entry.id);
    if (weights !== undefined) backends.push(weightsBackend(entry, weights, keep));
    return backends.length > 0 ? backends : [standInFor(entry, keep)];
  }

  function openBackend(spec: UpstreamSpec, entry: CatalogEntry): ManagedBackend {
    const id = `${spec.model}/${spec.name}`;
    const health = createHealth(clock, {
      settings: () => healthSettings,
      onEjected: (reason, forMs) => log.warn({ backend: id, reason, forMs }, 'backend ejected'),
    });
    const implausible = createImplausibleRecord(clock, log, id);
    const isDown = () => health.state() === 'ejected';
    const onImplausible = implausible.add;
    const engine = openUpstream({ ...toUpstreamOptions(spec), isDown, onImplausible }, entry);
    return newUpstreamBackend(clock, spec, engine, { health, implausible });
  }

  function weightsBackend(entry: CatalogEntry, weights: ServingWeights, keep: Keep) {
    const { name } = weights;
    const key = `${entry.id} weights ${versionOf(weights)}`;
    const engine = weightsEngines.engineFor(weights);
    const fixed = { name, model: entry.id, engine, kind: 'weights', source: 'weights' } as const;
    const backend = keep(key, () => newLocalBackend(clock, fixed));
    return describe(backend, entry, isDrained(entry.id, name));
  }

  function standInFor(entry: CatalogEntry, keep: Keep): ManagedBackend {
    const make = () => newLocalBackend(clock, { ...toStandIn(entry.id), engine: standIn });
    return describe(keep(`${entry.id} stand-in`, make), entry, false);
  }

  function toStandIn(model: string) {
    return { name: standIn.name, model, kind: 'stand-in', source: 'builtin' } as const;
  }

  function retire(backend: ManagedBackend): void {
    backend.draining = true;
    leaving.add(backend);
    const isIdle = () => backend.outstanding === 0;
    retirement
      .retire({ isIdle, close: () => backend.engine.close() })
      .catch((error) => log.error({ err: error, backend: backend.id }, 'a backend did not close'))
      .finally(() => leaving.delete(backend));
  }

  const isDrained = (model: string, name: string) => drained.has(`${model}/${name}`);
  /** For a request whose model has just left the catalog. */
  const nobodys: readonly ManagedBackend[] = [
    newLocalBackend(clock, { ...toStandIn(''), engine: standIn }),
  ];
  const unsubscribe = bindings.subscribe(rebuild);
  rebuild();

  return {
    forModel: (model) => lists.get(model) ?? nobodys,
    all() {
      const current = [...lists.values()].flat();
      const ids = new Set(current.map(({ id }) => id));
      return [...current, ...[...leaving].filter(({ id }) => !ids.has(id))];
    },
    find: (model, name) => lists.get(model)?.find((backend) => backend.name === name),
    configure(specs, health) {
      fileSpecs = specs;
      healthSettings = health;
      rebuild();
    },
    setLive(specs, names) {
      liveSpecs = specs;
      drained = names;
      rebuild();
    },
    async close() {
      unsubscribe();
      const upstreams = [...known.values()].filter(({ kind }) => kind === 'upstream');
      await Promise.all([
        standIn.close(),
        weightsEngines.close(),
        retirement.closeAll(),
        ...upstreams.map(({ engine }) => engine.close()),
      ]);
    },
  };
}

/** What an engine is opened with: the same is the same engine. */
const fingerprint = (spec: UpstreamSpec) => JSON.stringify(toUpstreamOptions(spec));
