// Pulls in the database. A process works on a pull while it holds its lease. Every change of state is a
// compare-and-set, so a pull survives its process and never runs twice at once.

import type { Database, Tx, WeightPullRow } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';

export type PullState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled';

export const liveStates: PullState[] = ['queued', 'running'];

export interface PullRows {
  insert(tx: Tx, row: NewPull): Promise<WeightPullRow>;
  /** Live pulls of the whole store, from all accounts. */
  live(db: Database | Tx): Promise<WeightPullRow[]>;
  find(accountId: string, id: string): Promise<WeightPullRow | undefined>;
  /** Newest first, bounded. */
  list(accountId: string): Promise<WeightPullRow[]>;
  /** Claims the oldest pull that is waiting or was left by a dead process; undefined if there is none. */
  claim(): Promise<WeightPullRow | undefined>;
  /** Renews the lease. Returns false if this process no longer owns the pull. */
  beat(id: string, bytesDone: number): Promise<boolean>;
  /** Changes the state of a pull this process owns. Returns false if another process changed it first. */
  leave(id: string, to: Ending): Promise<boolean>;
  cancel(tx: Tx, accountId: string, id: string): Promise<WeightPullRow | undefined>;
  /** Deletes pulls that ended long ago. */
  sweep(): Promise<void>;
}

export type NewPull = Pick<
  WeightPullRow,
  'id' | 'account_id' | 'model_id' | 'name' | 'repo' | 'commit_id' | 'files' | 'bytes_total'
>;

export interface Ending {
  state: 'queued' | 'done' | 'failed';
  bytesDone: number;
  error?: string;
}

const maxListed = 50;
const keptMs = 30 * 86_400_000;

export function createPullRows(
  db: Database,
  clock: Clock,
  options: { storeId: string; runner: string; leaseMs: number },
): PullRows {
  const { storeId, runner, leaseMs } = options;

  async function insert(tx: Tx, row: NewPull) {
    const now = clock.now();
    const state: PullState = 'queued';
    const full: WeightPullRow = {
      ...row,
      store_id: storeId,
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

  function claim() {
    const now = clock.now();
    return db
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

  async function beat(id: string, bytesDone: number) {
    const now = clock.now();
    const { numUpdatedRows } = await db
      .updateTable('weight_pulls')
      .set({ bytes_done: bytesDone, lease_until: now + leaseMs, updated_at: now })
      .where('id', '=', id)
      .where('runner', '=', runner)
      .where('state', '=', 'running')
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  async function leave(id: string, { state, bytesDone, error }: Ending) {
    const { numUpdatedRows } = await db
      .updateTable('weight_pulls')
      .set({
        state,
        bytes_done: bytesDone,
        error: error ?? null,
        runner: null,
        lease_until: null,
        updated_at: clock.now(),
      })
      .where('id', '=', id)
      .where('runner', '=', runner)
      .where('state', '=', 'running')
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  return {
    insert,
    live: (on) =>
      on
        .selectFrom('weight_pulls')
        .selectAll()
        .where('store_id', '=', storeId)
        .where('state', 'in', liveStates)
        .execute(),
    find: (accountId, id) =>
      db
        .selectFrom('weight_pulls')
        .selectAll()
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .where('store_id', '=', storeId)
        .executeTakeFirst(),
    list: (accountId) =>
      db
        .selectFrom('weight_pulls')
        .selectAll()
        .where('account_id', '=', accountId)
        .where('store_id', '=', storeId)
        .orderBy('created_at', 'desc')
        .orderBy('id')
        .limit(maxListed)
        .execute(),
    claim,
    beat,
    leave,
    cancel: (tx, accountId, id) =>
      tx
        .updateTable('weight_pulls')
        .set({ state: 'cancelled', lease_until: null, updated_at: clock.now() })
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .where('store_id', '=', storeId)
        .where('state', 'in', liveStates)
        .returningAll()
        .executeTakeFirst(),
    async sweep() {
      await db
        .deleteFrom('weight_pulls')
        .where('state', 'not in', liveStates)
        .where('updated_at', '<', clock.now() - keptMs)
        .execute();
    },
  };
}
