// The backends of every model: those of the configuration, those added live, local weights, and the stand-in. The
// lists are rebuilt at each change and read on every request, so that reading is one look-up.

import { EventEmitter, once } from 'node:events';
import type { FastifyBaseLogger } from 'fastify';
import type { LocalEngine } from '#inference/engines/local/parent/local.ts';
import type { Catalog, CatalogEntry } from '#inference/models/catalog.ts';
import type { Bindings, ServingWeights } from '#inference/weights/bindings.ts';
import type { Clock } from '#lib/clock.ts';
import type { Backend, Hold, ServedModels } from './backend.ts';
import { createHealth, type HealthSettings } from './health.ts';
import { createImplausibleRecord } from './implausible-counts.ts';
import {
  applySpec,
  type ManagedBackend,
  newHoldingBackend,
  newLocalBackend,
  newUpstreamBackend,
} from './managed.ts';
import { createRetirement, type Retirement, type RetirementOptions } from './retirement.ts';
import { type OpenUpstream, toUpstreamOptions, type UpstreamSpec } from './spec.ts';
import { createWeightsEngines, versionOf, type WeightsEngines } from './weights-engines.ts';

export interface RegistryParts {
  readonly clock: Clock;
  readonly log: FastifyBaseLogger;
  readonly catalog: Catalog;
  readonly bindings: Bindings;
  /** Null if it is turned off. */
  readonly standIn: LocalEngine | null;
  openWeights(weights: ServingWeights): LocalEngine;
  readonly openUpstream: OpenUpstream;
}

export interface ConfiguredBackends {
  readonly specs: readonly UpstreamSpec[];
  readonly health: HealthSettings;
}

/** What the rows of the database say. */
export interface LiveState {
  readonly specs: readonly UpstreamSpec[];
  /** Drained backends, as `<model>/<name>`. */
  readonly drained: ReadonlySet<string>;
  /** Models that have or had a backend. */
  readonly served: ReadonlySet<string>;
}

interface DeployedBackend {
  readonly spec: UpstreamSpec;
  readonly isDraining: boolean;
  /** In tokens. Absent or null if only the backend's own list of models says it. */
  readonly contextWindow?: number | null;
}

/** A model as a deployment serves it. */
export interface DeployedModel {
  readonly model: string;
  /** Name of the deployment. */
  readonly name: string;
  readonly backends: readonly DeployedBackend[];
  /** How requests wait; null if a replica takes them. */
  readonly hold: Hold | null;
}

/** How long it takes at most until a replica that has ended is known to have. */
const maxEndingMs = 2_000;

/** Returns the backend under a key, or makes it. */
type Keep = (key: string, make: () => ManagedBackend) => ManagedBackend;

export class BackendRegistry implements ServedModels {
  readonly #parts: RegistryParts;
  readonly #retirement: Retirement;
  readonly #weightsEngines: WeightsEngines;
  readonly #unsubscribe: () => void;
  readonly #leaving = new Set<ManagedBackend>();
  #configured: ConfiguredBackends;
  #live: LiveState = { specs: [], drained: new Set(), served: new Set() };
  /** Models that have or had a backend, which the database does not have yet. */
  readonly #unrecorded = new Set<string>();
  #deployed: readonly DeployedModel[] = [];
  /** Emits the id of each replica that is removed. */
  readonly #removals = new EventEmitter().setMaxListeners(0);
  /** Called to find out whether a replica of the model has ended. */
  onSuspect: (model: string) => void = () => {};
  #lists: ReadonlyMap<string, readonly ManagedBackend[]> = new Map();
  #listed: readonly CatalogEntry[] = [];
  /** All backends by the options of their engine: other options make a new backend. */
  #known: ReadonlyMap<string, ManagedBackend> = new Map();

  constructor(
    parts: RegistryParts,
    configured: ConfiguredBackends,
    options: RetirementOptions = {},
  ) {
    const { clock, bindings, openWeights } = parts;
    this.#parts = parts;
    this.#configured = configured;
    this.#retirement = createRetirement(clock, options);
    this.#weightsEngines = createWeightsEngines(bindings, openWeights, this.#retirement);
    this.#unsubscribe = bindings.subscribe(() => this.#rebuild());
    this.#rebuild();
  }

  forModel(model: string): readonly ManagedBackend[] {
    return this.#lists.get(model) ?? [];
  }

  get hasStandIn(): boolean {
    return this.#parts.standIn !== null;
  }

  listed(): readonly CatalogEntry[] {
    return this.#listed;
  }

  /** Models with a backend that `LiveState.served` does not have. */
  unrecorded(): string[] {
    return [...this.#unrecorded];
  }

  /** Backends of every model in the catalog's order, then those that are being removed. */
  all(): ManagedBackend[] {
    const current = [...this.#lists.values()].flat();
    const ids = new Set(current.map(({ id }) => id));
    return [...current, ...[...this.#leaving].filter(({ id }) => !ids.has(id))];
  }

  async hasEnded({ id, model }: Backend): Promise<boolean> {
    const current = this.forModel(model).find((backend) => backend.id === id);
    if (current === undefined) return true;
    if (current.source !== 'deployment') return false;
    const signal = AbortSignal.timeout(maxEndingMs);
    const removal = once(this.#removals, id, { signal });
    this.onSuspect(model);
    return removal.then(
      () => true,
      () => false,
    );
  }

  find(model: string, name: string): ManagedBackend | undefined {
    return this.#lists.get(model)?.find((backend) => backend.name === name);
  }

  /** Applies the configuration. Must also be called when the catalog has changed. */
  configure(specs: readonly UpstreamSpec[], health: HealthSettings): void {
    this.#configured = { specs, health };
    this.#rebuild();
  }

  /** Applies the rows of the database. */
  setLive(live: LiveState): void {
    this.#live = live;
    for (const model of live.served) this.#unrecorded.delete(model);
    this.#rebuild();
  }

  /** Applies the state of all deployments. Returns false if it is what it was. */
  setDeployed(deployed: readonly DeployedModel[]): boolean {
    if (JSON.stringify(deployed) === JSON.stringify(this.#deployed)) return false;
    this.#deployed = deployed;
    this.#rebuild();
    return true;
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    const upstreams = [...this.#known.values()].filter(({ kind }) => kind === 'upstream');
    await Promise.all([
      this.#parts.standIn?.close(),
      this.#weightsEngines.close(),
      this.#retirement.closeAll(),
      ...upstreams.map(({ engine }) => engine.close()),
    ]);
  }

  #rebuild(): void {
    const kept = new Map<string, ManagedBackend>();
    const keep: Keep = (key, make) => {
      const backend = this.#known.get(key) ?? make();
      kept.set(key, backend);
      return backend;
    };
    const entries = this.#parts.catalog.all();
    this.#lists = new Map(entries.map((entry) => [entry.id, this.#listFor(entry, keep)]));
    this.#listed = this.#findListed();
    const gone = [...this.#known].filter(([key]) => !kept.has(key)).map(([, backend]) => backend);
    this.#known = kept;
    for (const backend of gone) {
      if (backend.kind === 'upstream') this.#retire(backend);
      this.#removals.emit(backend.id);
    }
    this.#weightsEngines.prune();
  }

  /**
   * Backends of the configuration in its order, then live ones, weights and deployments. The stand-in if there never
   * was one.
   */
  #listFor(entry: CatalogEntry, keep: Keep): readonly ManagedBackend[] {
    const ofFile = this.#configured.specs.filter(({ model }) => model === entry.id);
    const names = new Set(ofFile.map(({ name }) => name));
    // If the configuration now has a backend of the same name, it wins.
    const live = this.#live.specs.filter(
      ({ model, name }) => model === entry.id && !names.has(name),
    );
    const backends = [...ofFile, ...live].map((spec) => {
      const key = `${entry.id} upstream ${fingerprint(spec)}`;
      const backend = keep(key, () => this.#openBackend(spec, entry));
      return applySpec(backend, entry, this.#isDrained(entry.id, spec.name), spec);
    });
    const weights = this.#parts.bindings.find(entry.id);
    if (weights !== undefined) backends.push(this.#weightsBackend(entry, weights, keep));
    backends.push(...this.#deployedBackends(entry, keep));
    if (backends.length > 0) {
      if (!this.#live.served.has(entry.id)) this.#unrecorded.add(entry.id);
      return backends;
    }
    const { standIn: engine } = this.#parts;
    if (engine === null || this.#wasServed(entry.id)) return [];
    const standIn = keep(`${entry.id} stand-in`, () => this.#newStandIn(entry.id, engine));
    return [applySpec(standIn, entry, false)];
  }

  #wasServed(model: string): boolean {
    return this.#live.served.has(model) || this.#unrecorded.has(model);
  }

  /** Without a stand-in, most names of the catalog are those of models that nobody can use. */
  #findListed(): readonly CatalogEntry[] {
    const listed = this.#parts.catalog.list();
    return this.hasStandIn ? listed : listed.filter(({ id }) => this.#wasServed(id));
  }

  #deployedBackends(entry: CatalogEntry, keep: Keep): ManagedBackend[] {
    const deployed = this.#deployed.filter(({ model }) => model === entry.id);
    const holding = new Set<string>();
    return deployed.flatMap(({ name, backends, hold }) => {
      const replicas = backends.map(({ spec, isDraining, contextWindow }) => {
        const key = `${entry.id} upstream ${fingerprint(spec)}`;
        const backend = keep(key, () => this.#openBackend(spec, entry));
        backend.contextWindow = contextWindow ?? backend.contextWindow;
        return applySpec(backend, entry, isDraining, spec);
      });
      // One that was removed may still end its replicas when another of its name is created.
      if (hold === null || holding.has(name)) return replicas;
      holding.add(name);
      const make = () => newHoldingBackend(this.#parts.clock, entry.id, name);
      const holder = keep(`${entry.id} deployment ${name}`, make);
      holder.hold = hold;
      holder.draining = hold.obstacle !== null;
      return [...replicas, holder];
    });
  }

  #openBackend(spec: UpstreamSpec, entry: CatalogEntry): ManagedBackend {
    const { clock, log, openUpstream } = this.#parts;
    const id = `${spec.model}/${spec.name}`;
    const health = createHealth(clock, {
      settings: () => this.#configured.health,
      onEjected: (reason, forMs) =>
        log.warn({ backend: id, url: spec.url, reason, forMs }, 'backend ejected'),
    });
    const implausible = createImplausibleRecord(clock, log, id);
    const isDown = () => health.state() === 'ejected';
    const onImplausible = implausible.add;
    const engine = openUpstream({ ...toUpstreamOptions(spec), isDown, onImplausible }, entry);
    return newUpstreamBackend(clock, spec, engine, { health, implausible });
  }

  #weightsBackend(entry: CatalogEntry, weights: ServingWeights, keep: Keep): ManagedBackend {
    const { name } = weights;
    const key = `${entry.id} weights ${versionOf(weights)}`;
    const engine = this.#weightsEngines.engineFor(weights);
    const fixed = { name, model: entry.id, engine, kind: 'weights', source: 'weights' } as const;
    const backend = keep(key, () => newLocalBackend(this.#parts.clock, fixed));
    return applySpec(backend, entry, this.#isDrained(entry.id, name));
  }

  #newStandIn(model: string, engine: LocalEngine): ManagedBackend {
    const fixed = { name: engine.name, model, engine } as const;
    return newLocalBackend(this.#parts.clock, { ...fixed, kind: 'stand-in', source: 'builtin' });
  }

  #retire(backend: ManagedBackend): void {
    backend.draining = true;
    this.#leaving.add(backend);
    const isIdle = () => backend.outstanding === 0;
    this.#retirement
      .retire({ isIdle, close: () => backend.engine.close() })
      .catch((err) => this.#parts.log.error({ err, backend: backend.id }, 'backend did not close'))
      .finally(() => this.#leaving.delete(backend));
  }

  #isDrained(model: string, name: string): boolean {
    return this.#live.drained.has(`${model}/${name}`);
  }
}

/** Identifies an engine by the options it is opened with. */
const fingerprint = (spec: UpstreamSpec) => JSON.stringify(toUpstreamOptions(spec));
