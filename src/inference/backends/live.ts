// Changes to backends while the server runs: added, drained, resumed, removed. The database has the truth,
// so that every server on it follows within seconds; the registry is told what it says.

import type { FastifyBaseLogger } from 'fastify';
import type { Audit } from '#accounts/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import type { Database, Tx } from '#db/tables.ts';
import { standInNames } from '#inference/models/builtin-models.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import { nearest } from '#lib/nearest.ts';
import {
  inFile,
  nameReserved,
  nameTaken,
  noSuchBackend,
  noSuchModel,
  notRemovable,
  onlyUpstreams,
  standInStays,
  tooManyBackends,
} from './errors.ts';
import type { LiveRows, LiveValues } from './live-rows.ts';
import type { ManagedBackend } from './managed.ts';
import type { BackendRegistry } from './registry.ts';
import type { UpstreamSpec } from './spec.ts';

export interface LiveBackends {
  /** Notices what was changed, here or by another server. Cheap when nothing was. */
  refresh(): Promise<void>;
  add(session: SessionPrincipal, spec: UpstreamSpec): Promise<ManagedBackend>;
  change(
    session: SessionPrincipal,
    which: { model: string; name: string },
    wishes: LiveValues & { draining?: boolean | undefined },
  ): Promise<ManagedBackend>;
  /** It takes no new request from now on, and is gone when it has answered those it has. */
  remove(session: SessionPrincipal, which: { model: string; name: string }): Promise<void>;
}

export interface LiveParts {
  db: Database;
  log: FastifyBaseLogger;
  audit: Audit;
  catalog: Catalog;
  rows: LiveRows;
  registry: BackendRegistry;
}

const maxBackends = 1_000;

export async function createLiveBackends(parts: LiveParts): Promise<LiveBackends> {
  const { db, log, audit, catalog, rows, registry } = parts;
  let seen = -1;
  let turn: Promise<void> = Promise.resolve();

  async function reload(): Promise<void> {
    // The version first: rows that are newer than it are only read once more.
    const version = await rows.version();
    if (version === seen) return;
    const [stored, drained] = await Promise.all([rows.list(), rows.drained()]);
    const specs = stored.flatMap((row) => {
      try {
        return [rows.toSpec(row)];
      } catch {
        log.error(
          { backend: `${row.model_id}/${row.name}` },
          'a backend was added by a server with another secret_key (MILLRACE_SECRET_KEY) and is not used',
        );
        return [];
      }
    });
    registry.setLive(specs, drained);
    seen = version;
  }

  /** One at a time: an old reading must not overwrite a newer one. */
  function refresh(): Promise<void> {
    turn = turn.catch(() => {}).then(reload);
    return turn;
  }

  /** In one transaction with its audit event, and visible here when it resolves. */
  async function write(action: (tx: Tx) => Promise<void>): Promise<void> {
    await db.transaction().execute(async (tx) => {
      await rows.countUp(tx);
      await action(tx);
    });
    await refresh();
  }

  async function get({ model, name }: { model: string; name: string }): Promise<ManagedBackend> {
    await refresh();
    const backend = registry.find(model, name);
    if (backend === undefined) throw noSuchBackend(model, name);
    return backend;
  }

  await refresh();
  return {
    refresh,
    async add(session, spec) {
      const { model, name, url } = spec;
      checkModel(catalog, model);
      if (standInNames.includes(name)) throw nameReserved(name);
      await refresh();
      if (registry.find(model, name) !== undefined) throw nameTaken(model, name);
      await write(async (tx) => {
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
      return get(spec);
    },
    async change(session, which, { draining, ...values }) {
      const backend = await get(which);
      const { id, model, name } = backend;
      const hasValues = Object.keys(values).length > 0;
      if (hasValues && backend.source === 'file') throw inFile(id, 'changed');
      if (hasValues && backend.source !== 'live') throw onlyUpstreams(id);
      if (draining === true && backend.kind === 'stand-in') throw standInStays(id);
      const turns = draining !== undefined && draining !== backend.draining;
      if (!hasValues && !turns) return backend;
      await write(async (tx) => {
        if (hasValues) {
          await rows.update(tx, model, name, values);
          await audit.record(tx, session, {
            action: 'backend.changed',
            resourceId: id,
            details: values,
          });
        }
        if (!turns) return;
        await (draining ? rows.drain(tx, model, name) : rows.resume(tx, model, name));
        const action = draining ? 'backend.drained' : 'backend.resumed';
        await audit.record(tx, session, { action, resourceId: id });
      });
      return get(which);
    },
    async remove(session, which) {
      await refresh();
      const { model, name } = which;
      const id = `${model}/${name}`;
      const source = registry.find(model, name)?.source;
      if (source === 'file') throw inFile(id, 'removed');
      if (source === 'weights') throw notRemovable(id);
      if (source === 'builtin') throw standInStays(id);
      await write(async (tx) => {
        // Also one that this server can't open.
        if (!(await rows.remove(tx, model, name))) throw noSuchBackend(model, name);
        await audit.record(tx, session, { action: 'backend.removed', resourceId: id });
      });
    },
  };
}

export function checkModel(catalog: Catalog, model: string): void {
  if (catalog.find(model) !== undefined) return;
  const ids = catalog.all().map(({ id }) => id);
  throw noSuchModel(model, nearest(model, ids));
}
