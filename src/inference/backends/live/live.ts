// Changes to backends while the server runs: added, drained, resumed, removed. The database is the source of truth,
// so that every server on it follows within seconds; this applies its rows to the registry.

import type { FastifyBaseLogger } from 'fastify';
import type { Audit } from '#accounts/audit/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import type { BackendRow } from '#db/tables/model-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import {
  hasBackend,
  inFile,
  isDeployed,
  nameReserved,
  nameTaken,
  noSuchBackend,
  notRemovable,
  onlyUpstreams,
  standInOff,
  standInStays,
  tooManyBackends,
} from '#inference/backends/errors.ts';
import type { ManagedBackend } from '#inference/backends/managed.ts';
import type { BackendRegistry } from '#inference/backends/registry.ts';
import type { UpstreamSpec } from '#inference/backends/spec.ts';
import { standInNames } from '#inference/models/builtin-models.ts';
import { type Catalog, getModel } from '#inference/models/catalog.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';
import type { LiveRows, LiveValues } from './live-rows.ts';

export interface LiveParts {
  readonly db: Database;
  readonly log: FastifyBaseLogger;
  readonly audit: Audit;
  readonly catalog: Catalog;
  readonly rows: LiveRows;
  readonly registry: BackendRegistry;
}

interface BackendName {
  readonly model: string;
  readonly name: string;
}

const maxBackends = 1_000;

export async function openLiveBackends(parts: LiveParts): Promise<LiveBackends> {
  const live = new LiveBackends(parts);
  await live.refresh();
  return live;
}

export class LiveBackends {
  readonly #parts: LiveParts;
  /** Reads one after the other: an old result must not overwrite a newer one. */
  readonly #mutex = createKeyedMutex();
  /** Version of the rows that the registry has; -1 before the first read. */
  #version = -1;

  constructor(parts: LiveParts) {
    this.#parts = parts;
  }

  /** Applies changes of this and other servers, and records which models have a backend. Cheap if there are none. */
  async refresh(): Promise<void> {
    const { registry, rows } = this.#parts;
    await this.#mutex.run('refresh', () => this.#reload());
    const models = registry.unrecorded();
    if (models.length > 0) await this.#write((tx) => rows.recordServed(tx, models));
  }

  async add(session: SessionPrincipal, spec: UpstreamSpec): Promise<ManagedBackend> {
    const { catalog, registry, rows, audit } = this.#parts;
    const { model, name, url } = spec;
    getModel(catalog, model);
    if (standInNames.includes(name)) throw nameReserved(name);
    await this.refresh();
    if (registry.find(model, name) !== undefined) throw nameTaken(model, name);
    await this.#write(async (tx) => {
      const stored = await tx.selectFrom('backends').select(['model_id', 'name']).execute();
      if (stored.length >= maxBackends) throw tooManyBackends(maxBackends);
      if (stored.some((row) => row.model_id === model && row.name === name)) {
        throw nameTaken(model, name);
      }
      await rows.insert(tx, spec);
      await audit.record(tx, session, {
        action: 'backend.created',
        resourceId: `${model}/${name}`,
        details: { url },
      });
    });
    return this.#get(spec);
  }

  async change(
    session: SessionPrincipal,
    which: BackendName,
    { draining, ...values }: LiveValues & { draining?: boolean | undefined },
  ): Promise<ManagedBackend> {
    const { rows, audit } = this.#parts;
    const backend = await this.#get(which);
    const { id, model, name } = backend;
    const hasValues = Object.keys(values).length > 0;
    if (backend.source === 'deployment') throw isDeployed(id);
    if (hasValues && backend.source === 'file') throw inFile(id, 'changed');
    if (hasValues && backend.source !== 'live') throw onlyUpstreams(id);
    if (draining === true && backend.kind === 'stand-in') throw standInStays(id);
    const changesDraining = draining !== undefined && draining !== backend.draining;
    if (!hasValues && !changesDraining) return backend;
    await this.#write(async (tx) => {
      if (hasValues) {
        await rows.update(tx, model, name, values);
        const action = 'backend.changed';
        await audit.record(tx, session, { action, resourceId: id, details: values });
      }
      if (!changesDraining) return;
      await (draining ? rows.drain(tx, model, name) : rows.resume(tx, model, name));
      const action = draining ? 'backend.drained' : 'backend.resumed';
      await audit.record(tx, session, { action, resourceId: id });
    });
    return this.#get(which);
  }

  /** The backend takes no new request from now on, and is closed once its last one has ended. */
  async remove(session: SessionPrincipal, { model, name }: BackendName): Promise<void> {
    const { registry, rows, audit } = this.#parts;
    await this.refresh();
    const id = `${model}/${name}`;
    const source = registry.find(model, name)?.source;
    if (source === 'file') throw inFile(id, 'removed');
    if (source === 'weights') throw notRemovable(id);
    if (source === 'deployment') throw isDeployed(id);
    if (source === 'builtin') throw standInStays(id);
    await this.#write(async (tx) => {
      // Also removes a row that this server can't decrypt.
      if (!(await rows.remove(tx, model, name))) throw noSuchBackend(model, name);
      await audit.record(tx, session, { action: 'backend.removed', resourceId: id });
    });
  }

  /** Lets the stand-in answer again for a model that had a backend. */
  async letStandIn(session: SessionPrincipal, model: string): Promise<void> {
    const { catalog, registry, rows, audit } = this.#parts;
    getModel(catalog, model);
    if (!registry.hasStandIn) throw standInOff();
    await this.refresh();
    const [backend] = registry.forModel(model);
    if (backend?.kind === 'stand-in') return;
    if (backend !== undefined) throw hasBackend(model, backend.name);
    await this.#write(async (tx) => {
      await rows.forgetServed(tx, model);
      await audit.record(tx, session, { action: 'model.stand_in', resourceId: model });
    });
  }

  async #reload(): Promise<void> {
    const { rows, registry } = this.#parts;
    // The version is read first: rows that are newer are only read once more.
    const version = await rows.version();
    if (version === this.#version) return;
    const [stored, drained, served] = await Promise.all([
      rows.list(),
      rows.drained(),
      rows.served(),
    ]);
    const specs = stored.flatMap((row) => this.#toSpecs(row));
    registry.setLive({ specs, drained, served });
    this.#version = version;
  }

  #toSpecs(row: BackendRow): UpstreamSpec[] {
    const { rows, log } = this.#parts;
    try {
      return [rows.toSpec(row)];
    } catch {
      log.error(
        { backend: `${row.model_id}/${row.name}` },
        'a backend was added by a server with another secret_key (MILLRACE_SECRET_KEY) and is not used',
      );
      return [];
    }
  }

  /** Makes a change in one transaction. The registry has it when this resolves. */
  async #write(action: (tx: Tx) => Promise<void>): Promise<void> {
    const { db, rows } = this.#parts;
    await db.transaction().execute(async (tx) => {
      await rows.countUp(tx);
      await action(tx);
    });
    await this.refresh();
  }

  async #get({ model, name }: BackendName): Promise<ManagedBackend> {
    await this.refresh();
    const backend = this.#parts.registry.find(model, name);
    if (backend === undefined) throw noSuchBackend(model, name);
    return backend;
  }
}
