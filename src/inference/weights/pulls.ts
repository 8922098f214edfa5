// Pulls as users request them: create, watch and cancel them, and remove weights again.

import { type Actor, type Audit, serverOf } from '#accounts/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { Database, WeightPullRow } from '#db/tables.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import { notFound } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { nearest } from '#lib/nearest.ts';
import type { Bindings } from './bindings.ts';
import { parseFile, parseSource, type Source } from './choose.ts';
import {
  alreadyPulled,
  isInUse,
  noKnownRepo,
  notOneSource,
  pullIsOver,
  tooManyPulls,
  unknownModel,
} from './errors.ts';
import type { Hub } from './hub.ts';
import type { PullRows } from './pull-rows.ts';
import type { Runner } from './runner.ts';
import { type Format, selectWeights } from './selection.ts';
import type { Store, Weights } from './store.ts';

export interface PullRequest {
  /** An id of the catalog. Its known repository is pulled. */
  readonly model?: string | null | undefined;
  readonly repo?: string | null | undefined;
  readonly file?: string | null | undefined;
  readonly quant?: string | null | undefined;
  /** The model id to serve. With `model`, it is that model. */
  readonly as?: string | null | undefined;
}

export interface PullParts {
  db: Database;
  audit: Audit;
  catalog: Catalog;
  hub: Hub;
  store: Store;
  rows: PullRows;
  bindings: Bindings;
  runner: Runner;
}

/** What a pull fetches, and for whom. */
interface Order {
  readonly source: Source;
  readonly format: Format;
  readonly modelId: string | null;
  readonly token: string | null;
  /** Ends the search on the hub. */
  readonly signal?: AbortSignal;
}

const maxLive = 100;
const lookMs = 20_000;

export class Pulls {
  readonly #parts: PullParts;
  /** Names of the deployments that use stored weights, by the weights' name. Set by what runs deployments. */
  usersOf: (stored: readonly Weights[]) => Promise<ReadonlyMap<string, readonly string[]>> =
    async () => new Map();

  constructor(parts: PullParts) {
    this.#parts = parts;
  }

  /**
   * Asks the hub for the files, then records the pull. Repeating the request returns the pull that is already
   * running.
   */
  async create(principal: SessionPrincipal, request: PullRequest): Promise<WeightPullRow> {
    const { catalog } = this.#parts;
    const source = toSource(catalog, request);
    const modelId =
      request.as == null ? (request.model ?? null) : getModel(catalog, request.as, 'as').id;
    const order: Order = { source, format: 'gguf', modelId, token: null };
    const row = await this.#record(principal, order);
    if (row.account_id !== principal.accountId || row.model_id !== modelId)
      throw alreadyPulled(row.name);
    return row;
  }

  /** A pull for a deployment. Joins one of the same weights that is already running, of any account. */
  async createFor(accountId: string, order: Omit<Order, 'modelId'>): Promise<WeightPullRow> {
    return this.#record(serverOf(accountId), { ...order, modelId: null });
  }

  async #record(actor: Actor & { accountId: string }, order: Order): Promise<WeightPullRow> {
    const { db, audit, hub, store, rows, runner } = this.#parts;
    const { source, format, modelId, token, signal } = order;
    const timeout = AbortSignal.timeout(lookMs);
    const call = { signal: signal ? AbortSignal.any([timeout, signal]) : timeout, token };
    const { commit, files: listed } = await hub.look(source, call);
    const selection = selectWeights(source, format, listed);
    const weights = await store.inspect({ ...selection, repo: source.repo, commit });
    const row = await db.transaction().execute(async (tx) => {
      await lockAccount(tx, actor.accountId);
      const live = await rows.live(tx);
      const same = live.find(({ name }) => name === weights.name);
      if (same !== undefined) return same;
      if (live.length >= maxLive) throw tooManyPulls(maxLive);
      await runner.checkSpace(weights, live);
      const row = await rows.insert(tx, {
        id: newId(),
        account_id: actor.accountId,
        model_id: modelId,
        name: weights.name,
        repo: source.repo,
        commit_id: commit,
        files: JSON.stringify(selection.files),
        bytes_total: weights.bytes,
      });
      const details = { name: row.name, model: modelId, bytes: row.bytes_total };
      await audit.record(tx, actor, { action: 'pull.created', resourceId: row.id, details });
      return row;
    });
    if (token !== null) runner.setToken(row.id, token);
    runner.wake();
    return row;
  }

  async get(accountId: string, id: string): Promise<WeightPullRow> {
    const row = await this.#parts.rows.find(accountId, id);
    if (row === undefined) throw notFound('This pull');
    return this.#withProgress(row);
  }

  async list(accountId: string): Promise<WeightPullRow[]> {
    return (await this.#parts.rows.list(accountId)).map((row) => this.#withProgress(row));
  }

  /** Deletes partial files, unless `keep` is set. */
  async cancel(principal: SessionPrincipal, id: string, keep: boolean): Promise<void> {
    const { db, audit, store, rows, runner } = this.#parts;
    const cancelled = await db.transaction().execute(async (tx) => {
      const row = await rows.cancel(tx, principal.accountId, id);
      if (row === undefined) return undefined;
      const details = { name: row.name };
      await audit.record(tx, principal, { action: 'pull.cancelled', resourceId: id, details });
      return row;
    });
    if (cancelled === undefined) throw pullIsOver((await this.get(principal.accountId, id)).state);
    await runner.abort(id);
    const weights = keep ? undefined : await store.find(cancelled.name);
    if (weights !== undefined) await store.removeParts(weights);
  }

  async removeWeights(principal: SessionPrincipal, name: string): Promise<void> {
    const { db, audit, store, rows, bindings } = this.#parts;
    const weights = await store.find(name);
    if (weights === undefined) throw notFound(name.slice(0, 300));
    const users = (await this.usersOf(await store.list())).get(name) ?? [];
    if (users.length > 0) throw isInUse(name, users);
    await db.transaction().execute(async (tx) => {
      const live = await rows.live(tx);
      if (live.some((row) => row.name === name)) throw alreadyPulled(name);
      await bindings.unbind(tx, name);
      const details = { name, bytes: weights.bytesOnDisk };
      await audit.record(tx, principal, { action: 'weights.removed', details });
    });
    // Engines are notified before the files are deleted.
    await bindings.refresh();
    await store.remove(weights);
  }

  /** Adds the current progress: the row is about a second behind a pull that runs here. */
  #withProgress(row: WeightPullRow): WeightPullRow {
    const bytes = row.state === 'running' ? this.#parts.runner.bytesOf(row.id) : undefined;
    return bytes === undefined ? row : { ...row, bytes_done: bytes };
  }
}

function getModel(catalog: Catalog, id: string, param: 'model' | 'as') {
  const entry = catalog.findById(id);
  if (entry !== undefined) return entry;
  const ids = catalog.list().map((one) => one.id);
  throw unknownModel(id, param, nearest(id, ids));
}

function toSource(catalog: Catalog, { model, repo, file, quant }: PullRequest): Source {
  if ((model == null) === (repo == null)) throw notOneSource();
  const known = model == null ? null : getModel(catalog, model, 'model');
  if (known !== null && known.weights.gguf === null) throw noKnownRepo(known.id);
  const source = parseSource(known?.weights.gguf ?? repo ?? '');
  return {
    ...source,
    file: file == null ? source.file : parseFile(file),
    quant: quant ?? source.quant,
  };
}
