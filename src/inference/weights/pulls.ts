// Pulls as users request them: create, watch and cancel them, and remove weights again.

import { type Actor, type Audit, serverOf } from '#accounts/audit/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { Database } from '#db/tables/tables.ts';
import { type Catalog, getModel } from '#inference/models/catalog.ts';
import { notFound } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import type { Bindings } from './bindings.ts';
import { parseFile, parseSource, type Source } from './choose.ts';
import {
  alreadyPulled,
  isInUse,
  noKnownRepo,
  notOneSource,
  onlyOwners,
  pullIsOver,
  tooManyPulls,
} from './errors.ts';
import type { Hub } from './hub.ts';
import {
  isLive,
  type NewPull,
  type PullRow,
  type PullRows,
  type PullWithFiles,
  toManifest,
} from './pull-rows.ts';
import type { Runner } from './runner.ts';
import { type Candidate, type Format, selectWeights } from './selection.ts';
import type { Manifest, Store, Weights } from './store.ts';

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
  /** The model that the weights will serve; null if they are only stored. */
  readonly modelId: string | null;
  readonly token: string | null;
  readonly isForDeployments: boolean;
  /** Ends the search on the hub. */
  readonly signal?: AbortSignal;
}

/** What the hub has for an order. */
interface Found {
  readonly manifest: Manifest;
  readonly weights: Weights;
}

/** A deployment that names weights. */
export interface WeightsUser {
  readonly name: string;
  readonly isStopped: boolean;
}

const maxLive = 100;
const lookMs = 20_000;

export class Pulls {
  readonly #parts: PullParts;
  /** The deployments that use weights, by the weights' name. Set by what runs deployments. */
  usersOf: (
    candidates: readonly Candidate[],
  ) => Promise<ReadonlyMap<string, readonly WeightsUser[]>> = async () => new Map();

  constructor(parts: PullParts) {
    this.#parts = parts;
  }

  /**
   * Asks the hub for the files, then records the pull. Repeating the request returns the pull that is already
   * running.
   */
  async create(principal: SessionPrincipal, request: PullRequest): Promise<PullWithFiles> {
    const { catalog } = this.#parts;
    const source = toSource(catalog, request);
    const modelId =
      request.as == null ? (request.model ?? null) : getNamed(catalog, request.as, 'as').id;
    const order: Order = {
      source,
      format: 'gguf',
      modelId,
      token: null,
      isForDeployments: false,
    };
    const found = await this.#find(order);
    if (!found.weights.isWhole) await this.#checkUse(principal, found.manifest);
    const row = await this.#record(principal, order, found);
    if (row.account_id !== principal.accountId || row.model_id !== modelId)
      throw alreadyPulled(row.name);
    return { ...row, files: JSON.stringify(found.manifest.files) };
  }

  /** A pull for deployments. Joins one of the same weights that is already running, of any account. */
  async createFor(
    accountId: string,
    wanted: Omit<Order, 'modelId' | 'isForDeployments'>,
  ): Promise<PullRow> {
    const order = { ...wanted, modelId: null, isForDeployments: true };
    const found = await this.#find(order);
    wanted.signal?.throwIfAborted();
    return this.#record(serverOf(accountId), order, found);
  }

  async #find({ source, format, token, signal }: Order): Promise<Found> {
    const { hub, store } = this.#parts;
    const timeout = AbortSignal.timeout(lookMs);
    const call = { signal: signal ? AbortSignal.any([timeout, signal]) : timeout, token };
    const { commit, files } = await hub.look(source, call);
    const manifest = { ...selectWeights(source, format, files), repo: source.repo, commit };
    return { manifest, weights: await store.inspect(manifest) };
  }

  /** Weights that a deployment names are in use: only an owner may change what its engines load. */
  async #checkUse(principal: SessionPrincipal, wanted: Candidate): Promise<void> {
    if (principal.role === 'owner') return;
    const pulled = (await this.#parts.rows.liveWithFiles()).map(toManifest);
    // Which of several quantisations a deployment uses depends on all that are there.
    const all = [...(await this.#whole()), ...pulled, wanted];
    const candidates = [...new Map(all.map((one) => [one.name, one])).values()];
    const users = (await this.usersOf(candidates)).get(wanted.name) ?? [];
    if (users.length > 0) throw onlyOwners(wanted.name, toNames(users));
  }

  #whole = async () => (await this.#parts.store.list()).filter(({ isWhole }) => isWhole);

  async #record(
    actor: Actor & { accountId: string },
    { modelId, token, isForDeployments }: Order,
    { manifest, weights }: Found,
  ): Promise<PullRow> {
    const { db, audit, rows, runner } = this.#parts;
    const row = await db.transaction().execute(async (tx) => {
      await lockAccount(tx, actor.accountId);
      const live = await rows.live(tx);
      const same = live.find(({ name }) => name === weights.name);
      if (same !== undefined && token !== null) await rows.addToken(tx, same.id, token);
      if (same !== undefined) return same;
      if (live.length >= maxLive) throw tooManyPulls(maxLive);
      await runner.checkSpace(weights, live);
      const pull: NewPull = {
        id: newId(),
        account_id: actor.accountId,
        model_id: modelId,
        name: weights.name,
        repo: manifest.repo,
        commit_id: manifest.commit,
        files: JSON.stringify(manifest.files),
        for_deployments: isForDeployments ? 1 : 0,
        bytes_total: weights.bytes,
      };
      const row = await rows.insert(tx, pull, token);
      const details = { name: row.name, model: modelId, bytes: row.bytes_total };
      await audit.record(tx, actor, { action: 'pull.created', resourceId: row.id, details });
      return row;
    });
    runner.wake();
    return row;
  }

  async get(accountId: string, id: string): Promise<PullWithFiles> {
    const row = await this.#parts.rows.find(accountId, id);
    if (row === undefined) throw notFound('This pull');
    return this.#withProgress(row);
  }

  /** The pull as it is now. Its files, which never change, are not read again. */
  async refresh(known: PullWithFiles): Promise<PullWithFiles> {
    const row = await this.#parts.rows.get(known.id);
    if (row === undefined) throw notFound('This pull');
    return this.#withProgress({ ...known, ...row });
  }

  async list(accountId: string): Promise<PullWithFiles[]> {
    return (await this.#parts.rows.list(accountId)).map((row) => this.#withProgress(row));
  }

  /** Deletes partial files, unless `keep` is set. */
  async cancel(principal: SessionPrincipal, id: string, keep: boolean): Promise<void> {
    const row = await this.get(principal.accountId, id);
    if (isLive(row)) await this.#checkUse(principal, toManifest(row));
    if (await this.#end(principal, row, keep)) return;
    throw pullIsOver((await this.get(principal.accountId, id)).state);
  }

  /** Ends pulls that were made for deployments and that no deployment needs any more. What came is kept. */
  async endUnneeded(): Promise<void> {
    const { rows } = this.#parts;
    const live = await rows.liveWithFiles();
    for (const row of live.filter((one) => one.for_deployments === 1)) {
      const users = (await this.usersOf([toManifest(row)])).get(row.name) ?? [];
      if (users.every(({ isStopped }) => isStopped))
        await this.#end(serverOf(row.account_id), row, true);
    }
  }

  /** Returns false if the pull had ended before. */
  async #end(actor: Actor, { id, account_id, name }: PullRow, keep: boolean): Promise<boolean> {
    const { db, audit, store, rows, runner } = this.#parts;
    const isEnded = await db.transaction().execute(async (tx) => {
      if (!(await rows.cancel(tx, account_id, id))) return false;
      const details = { name };
      await audit.record(tx, actor, { action: 'pull.cancelled', resourceId: id, details });
      return true;
    });
    if (!isEnded) return false;
    await runner.abort(id);
    const weights = keep ? undefined : await store.find(name);
    if (weights !== undefined) await store.removeParts(weights);
    return true;
  }

  async removeWeights(principal: SessionPrincipal, name: string): Promise<void> {
    const { db, audit, store, rows, bindings } = this.#parts;
    const weights = await store.find(name);
    if (weights === undefined) throw notFound(name.slice(0, 300));
    const users = (await this.usersOf(await this.#whole())).get(name) ?? [];
    if (users.length > 0) throw isInUse(name, toNames(users));
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
  #withProgress(row: PullWithFiles): PullWithFiles {
    const bytes = row.state === 'running' ? this.#parts.runner.bytesOf(row.id) : undefined;
    return bytes === undefined ? row : { ...row, bytes_done: bytes };
  }
}

const toNames = (users: readonly WeightsUser[]) => users.map(({ name }) => name);

const getNamed = (catalog: Catalog, id: string, param: 'model' | 'as') =>
  getModel(catalog, id, { code: 'invalid_body', param });

function toSource(catalog: Catalog, { model, repo, file, quant }: PullRequest): Source {
  if ((model == null) === (repo == null)) throw notOneSource();
  const known = model == null ? null : getNamed(catalog, model, 'model');
  if (known !== null && known.weights.gguf === null) throw noKnownRepo(known.id);
  const source = parseSource(known?.weights.gguf ?? repo ?? '');
  return {
    ...source,
    file: file == null ? source.file : parseFile(file),
    quant: quant ?? source.quant,
  };
}
