// Pulls in the database. A process works on a pull while it holds its lease, so that it never runs twice at once.

import type { ExpressionBuilder } from 'kysely';
import { Lease, type LeaseOptions, released } from '#db/lease.ts';
import type { WeightPullRow } from '#db/tables/model-rows.ts';
import type { Database, Tables, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import type { Seal } from '#lib/secrets/seal.ts';
import type { Manifest } from './store.ts';

export type PullState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled';

const liveStates: PullState[] = ['queued', 'running'];

/** A pull without its files, whose list may be long, and without its token. */
export type PullRow = Omit<WeightPullRow, 'files' | 'hub_token'>;
export type PullWithFiles = Omit<WeightPullRow, 'hub_token'>;

export type NewPull = Pick<
  WeightPullRow,
  | 'id'
  | 'account_id'
  | 'model_id'
  | 'name'
  | 'repo'
  | 'commit_id'
  | 'files'
  | 'for_deployments'
  | 'bytes_total'
>;

export interface Ending {
  state: 'queued' | 'done' | 'failed';
  bytesDone: number;
  error?: string | null;
}

const columns = [
  'id',
  'account_id',
  'store_id',
  'model_id',
  'name',
  'repo',
  'commit_id',
  'for_deployments',
  'bytes_total',
  'bytes_done',
  'state',
  'error',
  'runner',
  'lease_until',
  'created_at',
  'updated_at',
] as const satisfies readonly (keyof PullRow)[];
const maxListed = 50;
const keptMs = 30 * 86_400_000;

export interface PullRowsOptions extends LeaseOptions {
  readonly storeId: string;
  readonly seal: Seal;
}

export class PullRows {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #options: PullRowsOptions;
  readonly #lease: Lease<'weight_pulls'>;

  constructor(db: Database, clock: Clock, options: PullRowsOptions) {
    this.#db = db;
    this.#clock = clock;
    this.#options = options;
    this.#lease = new Lease('weight_pulls', clock, options);
  }

  async insert(tx: Tx, row: NewPull, token: string | null): Promise<WeightPullRow> {
    const now = this.#clock.now();
    const state: PullState = 'queued';
    const full: WeightPullRow = {
      ...row,
      hub_token: this.#sealToken(row.id, token),
      store_id: this.#options.storeId,
      bytes_done: 0,
      state,
      error: null,
      ...released,
      created_at: now,
      updated_at: now,
    };
    await tx.insertInto('weight_pulls').values(full).execute();
    return full;
  }

  /** Live pulls of the whole store, from all accounts. */
  live(db: Database | Tx): Promise<PullRow[]> {
    return this.#live(db).select(columns).execute();
  }

  liveWithFiles(): Promise<PullWithFiles[]> {
    return this.#live(this.#db)
      .select([...columns, 'files'])
      .execute();
  }

  /** The token of a pull that was claimed; null if it has none, or a server with another key sealed it. */
  tokenOf({ id, hub_token: sealed }: WeightPullRow): string | null {
    try {
      return sealed && this.#options.seal.open(sealed, toPlace(id));
    } catch {
      return null;
    }
  }

  /** Gives a token to a pull that has none. */
  async addToken(tx: Tx, id: string, token: string): Promise<void> {
    await tx
      .updateTable('weight_pulls')
      .set({ hub_token: this.#sealToken(id, token) })
      .where('id', '=', id)
      .where('hub_token', 'is', null)
      .execute();
  }

  find(accountId: string, id: string): Promise<PullWithFiles | undefined> {
    return this.#of(accountId).where('id', '=', id).executeTakeFirst();
  }

  /** A pull of the store, of any account. */
  get(id: string): Promise<PullRow | undefined> {
    return this.#db
      .selectFrom('weight_pulls')
      .select(columns)
      .where('store_id', '=', this.#options.storeId)
      .where('id', '=', id)
      .executeTakeFirst();
  }

  /** Newest first, bounded. */
  list(accountId: string): Promise<PullWithFiles[]> {
    return this.#of(accountId)
      .orderBy('created_at', 'desc')
      .orderBy('id')
      .limit(maxListed)
      .execute();
  }

  /** Claims the oldest pull that is waiting or was left by a dead process; undefined if there is none. */
  claim(): Promise<WeightPullRow | undefined> {
    const { storeId, runner } = this.#options;
    const isWaiting = (row: ExpressionBuilder<Tables, 'weight_pulls'>) =>
      row.and([
        row('store_id', '=', storeId),
        row('state', 'in', liveStates),
        // A process goes on with its own pull after it was stopped for a while.
        row.or([row('runner', 'is', null), row('runner', '!=', runner)]),
      ]);
    const values = { state: 'running', updated_at: this.#clock.now() };
    return this.#lease.claim(this.#db, isWaiting, values);
  }

  /** Renews the lease. Returns false if this process no longer owns the pull. */
  beat(id: string, bytesDone: number): Promise<boolean> {
    return this.#updateOwned(id, { bytes_done: bytesDone, ...this.#lease.held() });
  }

  /** Changes the state of a pull this process owns. Returns false if another process changed it first. */
  leave(id: string, { state, bytesDone, error = null }: Ending): Promise<boolean> {
    const left = { state, bytes_done: bytesDone, error, ...released };
    return this.#updateOwned(id, state === 'queued' ? left : { ...left, hub_token: null });
  }

  cancel(tx: Tx, accountId: string, id: string): Promise<PullRow | undefined> {
    const now = this.#clock.now();
    return tx
      .updateTable('weight_pulls')
      .set({ state: 'cancelled', hub_token: null, lease_until: null, updated_at: now })
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('store_id', '=', this.#options.storeId)
      .where('state', 'in', liveStates)
      .returning(columns)
      .executeTakeFirst();
  }

  /** Deletes pulls that ended long ago. */
  async sweep(): Promise<void> {
    await this.#db
      .deleteFrom('weight_pulls')
      .where('state', 'not in', liveStates)
      .where('updated_at', '<', this.#clock.now() - keptMs)
      .execute();
  }

  #sealToken = (id: string, token: string | null) =>
    token && this.#options.seal.close(token, toPlace(id));

  #live(db: Database | Tx) {
    return db
      .selectFrom('weight_pulls')
      .where('store_id', '=', this.#options.storeId)
      .where('state', 'in', liveStates);
  }

  #of(accountId: string) {
    return this.#db
      .selectFrom('weight_pulls')
      .select([...columns, 'files'])
      .where('account_id', '=', accountId)
      .where('store_id', '=', this.#options.storeId);
  }

  async #updateOwned(id: string, values: Partial<WeightPullRow>): Promise<boolean> {
    const changed = { ...values, updated_at: this.#clock.now() };
    const updated = await this.#lease.update(this.#db, id, changed, (row) =>
      row('state', '=', 'running'),
    );
    return updated !== undefined;
  }
}

export const toManifest = ({ name, repo, commit_id, files }: PullWithFiles): Manifest => ({
  name,
  repo,
  commit: commit_id,
  files: JSON.parse(files),
});

export const isLive = ({ state }: PullRow) => liveStates.includes(state as PullState);

const toPlace = (id: string) => `pull ${id}`;
