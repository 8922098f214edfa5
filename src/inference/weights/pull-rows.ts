// Pulls in the database. A process works on a pull while it holds its lease. Every change of state is a
// compare-and-set, so a pull survives its process and never runs twice at once.

import type { Database, Tx, WeightPullRow } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';

export type PullState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled';

export const liveStates: PullState[] = ['queued', 'running'];

export type NewPull = Pick<
  WeightPullRow,
  'id' | 'account_id' | 'model_id' | 'name' | 'repo' | 'commit_id' | 'files' | 'bytes_total'
>;

export interface Ending {
  state: 'queued' | 'done' | 'failed';
  bytesDone: number;
  error?: string | null;
}

const maxListed = 50;
const keptMs = 30 * 86_400_000;

export interface PullRowsOptions {
  readonly storeId: string;
  /** Identifies this process in the leases it holds. */
  readonly runner: string;
  readonly leaseMs: number;
}

export class PullRows {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #options: PullRowsOptions;

  constructor(db: Database, clock: Clock, options: PullRowsOptions) {
    this.#db = db;
    this.#clock = clock;
    this.#options = options;
  }

  async insert(tx: Tx, row: NewPull): Promise<WeightPullRow> {
    const now = this.#clock.now();
    const state: PullState = 'queued';
    const full: WeightPullRow = {
      ...row,
      store_id: this.#options.storeId,
      bytes_done: 0,
      state,
      error: null,
      runner: null,
      lease_until: null,
      created_at: now,
      updated_at: now,
    };
    await tx.insertInto('weight_pulls').values(full).execute();
    return full;
  }

  /** Live pulls of the whole store, from all accounts. */
  live(db: Database | Tx): Promise<WeightPullRow[]> {
    return db
      .selectFrom('weight_pulls')
      .selectAll()
      .where('store_id', '=', this.#options.storeId)
      .where('state', 'in', liveStates)
      .execute();
  }

  find(accountId: string, id: string): Promise<WeightPullRow | undefined> {
    return this.#of(accountId).where('id', '=', id).executeTakeFirst();
  }

  /** A pull of the store, of any account. */
  get(id: string): Promise<WeightPullRow | undefined> {
    return this.#db
      .selectFrom('weight_pulls')
      .selectAll()
      .where('store_id', '=', this.#options.storeId)
      .where('id', '=', id)
      .executeTakeFirst();
  }

  /** Newest first, bounded. */
  list(accountId: string): Promise<WeightPullRow[]> {
    return this.#of(accountId)
      .orderBy('created_at', 'desc')
      .orderBy('id')
      .limit(maxListed)
      .execute();
  }

  /** Claims the oldest pull that is waiting or was left by a dead process; undefined if there is none. */
  claim(): Promise<WeightPullRow | undefined> {
    const { storeId, runner, leaseMs } = this.#options;
    const now = this.#clock.now();
    return this.#db
      .updateTable('weight_pulls')
      .set({ state: 'running', runner, lease_until: now + leaseMs, updated_at: now })
      .where((row) =>
        row.or([
          row('state', '=', 'queued'),
          row.and([row('state', '=', 'running'), row('lease_until', '<', now)]),
        ]),
      )
      .where('id', '=', (query) =>
        query
          .selectFrom('weight_pulls as waiting')
          .select('waiting.id')
          .where('waiting.store_id', '=', storeId)
          .where((row) =>
            row.or([
              row('waiting.state', '=', 'queued'),
              row.and([
                row('waiting.state', '=', 'running'),
                row('waiting.lease_until', '<', now),
                row('waiting.runner', '!=', runner),
              ]),
            ]),
          )
          .orderBy('waiting.created_at')
          .orderBy('waiting.id')
          .limit(1),
      )
      .returningAll()
      .executeTakeFirst();
  }

  /** Renews the lease. Returns false if this process no longer owns the pull. */
  beat(id: string, bytesDone: number): Promise<boolean> {
    const lease_until = this.#clock.now() + this.#options.leaseMs;
    return this.#updateOwned(id, { bytes_done: bytesDone, lease_until });
  }

  /** Changes the state of a pull this process owns. Returns false if another process changed it first. */
  leave(id: string, { state, bytesDone, error = null }: Ending): Promise<boolean> {
    const ended = { state, bytes_done: bytesDone, error, runner: null, lease_until: null };
    return this.#updateOwned(id, ended);
  }

  cancel(tx: Tx, accountId: string, id: string): Promise<WeightPullRow | undefined> {
    return tx
      .updateTable('weight_pulls')
      .set({ state: 'cancelled', lease_until: null, updated_at: this.#clock.now() })
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('store_id', '=', this.#options.storeId)
      .where('state', 'in', liveStates)
      .returningAll()
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

  #of(accountId: string) {
    return this.#db
      .selectFrom('weight_pulls')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('store_id', '=', this.#options.storeId);
  }

  async #updateOwned(id: string, values: Partial<WeightPullRow>): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('weight_pulls')
      .set({ ...values, updated_at: this.#clock.now() })
      .where('id', '=', id)
      .where('runner', '=', this.#options.runner)
      .where('state', '=', 'running')
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }
}
