// Batches in the database. A process works on a batch while it holds its lease. Every change of state is a
// compare-and-set, so a batch survives its process, and what a process without the lease writes is dropped.

import { isCallerGone } from '#accounts/caller-gone.ts';
import { writeBatch } from '#accounts/usage/write-batch.ts';
import type { BatchRow, BatchState } from '#db/batch-rows.ts';
import { toRawTx } from '#db/raw.ts';
import type { Database, Tx, UsageRequestRow } from '#db/tables.ts';
import { appendBlocks, blockBytes, newFile } from '#inference/apis/files/files.ts';
import type { Clock } from '#lib/clock.ts';
import type { LineResult } from './line.ts';

export const liveStates = ['validating', 'in_progress', 'finalizing', 'cancelling'] as const;

export interface RowsOptions {
  /** Identifies this process in the leases it holds. */
  readonly runner: string;
  readonly leaseMs: number;
  /** How long results and ended batches are kept. */
  readonly keepMs: number;
}

/** What one transaction adds to a batch: the results of lines, what they cost, and which lines are done now. */
export interface Progress {
  readonly results: readonly LineResult[];
  readonly usage: readonly UsageRequestRow[];
  readonly doneOffset: number;
  readonly doneAhead: readonly number[];
}

export class BatchRows {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #options: RowsOptions;

  constructor(db: Database, clock: Clock, options: RowsOptions) {
    this.#db = db;
    this.#clock = clock;
    this.#options = options;
  }

  /** Claims the oldest batch that has no live runner; undefined if there is none. */
  claim(skip: {
    ids: readonly string[];
    accounts: readonly string[];
  }): Promise<BatchRow | undefined> {
    const { runner, leaseMs } = this.#options;
    const now = this.#clock.now();
    return this.#db
      .updateTable('batches')
      .set({ runner, lease_until: now + leaseMs })
      .where((row) => row.or([row('runner', 'is', null), row('lease_until', '<', now)]))
      .where('id', '=', (query) => {
        let free = query
          .selectFrom('batches as free')
          .select('free.id')
          .where('free.state', 'in', liveStates)
          .where((row) =>
            row.or([row('free.runner', 'is', null), row('free.lease_until', '<', now)]),
          );
        if (skip.ids.length > 0) free = free.where('free.id', 'not in', skip.ids);
        if (skip.accounts.length > 0) free = free.where('free.account_id', 'not in', skip.accounts);
        return free.orderBy('free.created_at').orderBy('free.id').limit(1);
      })
      .returningAll()
      .executeTakeFirst();
  }

  /** Renews the lease. Returns undefined if this process has lost the batch. */
  renew(id: string): Promise<BatchRow | undefined> {
    const lease_until = this.#clock.now() + this.#options.leaseMs;
    return this.#owned(this.#db, id, { lease_until });
  }

  /** Gives the batch to the next process that asks. */
  async release(id: string): Promise<void> {
    await this.#owned(this.#db, id, { runner: null, lease_until: null });
  }

  /** Stores the outcome of the validation. Nothing changes if the batch was cancelled meanwhile. */
  async fail(id: string, total: number, errors: readonly unknown[]): Promise<void> {
    const now = this.#clock.now();
    const ended = { failed_at: now, runner: null, lease_until: null };
    const values = { state: 'failed' as const, total, errors: JSON.stringify(errors), ...ended };
    await this.#owned(this.#db, id, values, ['validating']);
  }

  /** Creates the files of the results and lets lines run. */
  begin({ id, account_id: accountId }: BatchRow, total: number): Promise<void> {
    return this.#db.transaction().execute(async (tx) => {
      const now = this.#clock.now();
      const output = newFile(accountId, 'batch_output', now);
      const error = newFile(accountId, 'batch_output', now);
      const files = { output_file_id: output.id, error_file_id: error.id };
      const values = { state: 'in_progress' as const, total, in_progress_at: now, ...files };
      if ((await this.#owned(tx, id, values, ['validating'])) === undefined) return;
      await tx
        .insertInto('files')
        .values([
          { ...output, filename: `${id}_output.jsonl` },
          { ...error, filename: `${id}_error.jsonl` },
        ])
        .execute();
    });
  }

  /** Returns false if this process has lost the batch, or if it was cancelled: nothing is stored then. */
  add({ id, output_file_id, error_file_id }: BatchRow, progress: Progress): Promise<boolean> {
    const { results, usage, doneOffset, doneAhead } = progress;
    const [good, bad] = [results.filter((it) => !it.isError), results.filter((it) => it.isError)];
    return this.#db.transaction().execute(async (tx) => {
      // First, because it locks the row of the batch.
      const { numUpdatedRows } = await tx
        .updateTable('batches')
        .set((row) => ({
          completed: row('completed', '+', good.length),
          failed: row('failed', '+', bad.length),
          done_offset: doneOffset,
          done_ahead: JSON.stringify(doneAhead),
          lease_until: this.#clock.now() + this.#options.leaseMs,
        }))
        .where('id', '=', id)
        .where('runner', '=', this.#options.runner)
        .where('state', 'in', ['in_progress', 'finalizing'])
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return false;
      if (good.length > 0) await appendBlocks(tx, output_file_id as string, toBlocks(good));
      if (bad.length > 0) await appendBlocks(tx, error_file_id as string, toBlocks(bad));
      if (usage.length > 0) await writeBatch(toRawTx(tx), usage);
      return true;
    });
  }

  /** All lines are done, or will be given up if the batch has expired. */
  finalize(id: string, isExpired: boolean): Promise<BatchRow | undefined> {
    const now = this.#clock.now();
    const values = { finalizing_at: now, ...(isExpired && { expired_at: now }) };
    return this.#owned(this.#db, id, { state: 'finalizing', ...values }, ['in_progress']);
  }

  /** Ends a batch and publishes its results. */
  end(row: BatchRow, state: 'completed' | 'expired' | 'cancelled'): Promise<void> {
    const now = this.#clock.now();
    const at = state === 'completed' ? { completed_at: now } : {};
    const cancelled = state === 'cancelled' ? { cancelled_at: now } : {};
    const values = { state, ...at, ...cancelled, runner: null, lease_until: null };
    return this.#db.transaction().execute(async (tx) => {
      const ended = await this.#owned(tx, row.id, values, ['finalizing', 'cancelling']);
      if (ended === undefined) return;
      await this.#publish(tx, row, now);
    });
  }

  /** Stops a batch whose caller may no longer use the account. Returns undefined if there was nothing to stop. */
  revoke(id: string, errors: readonly unknown[]): Promise<BatchRow | undefined> {
    const now = this.#clock.now();
    return this.#db
      .updateTable('batches')
      .set({ state: 'cancelling', cancelling_at: now, errors: JSON.stringify(errors) })
      .where('id', '=', id)
      .where('runner', '=', this.#options.runner)
      .where('state', 'in', ['validating', 'in_progress'])
      .where(isCallerGone('batches', now))
      .returningAll()
      .executeTakeFirst();
  }

  /** Deletes batches that ended long ago. */
  async sweep(): Promise<void> {
    await this.#db
      .deleteFrom('batches')
      .where('state', 'not in', liveStates)
      .where('expires_at', '<', this.#clock.now() - this.#options.keepMs)
      .execute();
  }

  async #publish(tx: Tx, row: BatchRow, now: number): Promise<void> {
    const ids = [row.output_file_id, row.error_file_id].filter((id) => id !== null);
    if (ids.length === 0) return;
    const expires_at = now + (row.output_keep_ms ?? this.#options.keepMs);
    const files = () => tx.updateTable('files').where('id', 'in', ids);
    const ready = { state: 'ready' as const, created_at: now, expires_at };
    await files().set(ready).where('bytes', '>', 0).execute();
    await files().set({ state: 'deleted', expires_at: 0 }).where('bytes', '=', 0).execute();
    const empty = await tx
      .selectFrom('files')
      .select('id')
      .where('id', 'in', ids)
      .where('bytes', '=', 0)
      .execute();
    for (const { id } of empty) {
      const column = id === row.output_file_id ? 'output_file_id' : 'error_file_id';
      await tx
        .updateTable('batches')
        .set({ [column]: null })
        .where('id', '=', row.id)
        .execute();
    }
  }

  #owned(
    db: Database | Tx,
    id: string,
    values: Partial<BatchRow>,
    states: readonly BatchState[] = liveStates,
  ): Promise<BatchRow | undefined> {
    return db
      .updateTable('batches')
      .set(values)
      .where('id', '=', id)
      .where('runner', '=', this.#options.runner)
      .where('state', 'in', states)
      .returningAll()
      .executeTakeFirst();
  }
}

function toBlocks(results: readonly LineResult[]): Buffer[] {
  const bytes = Buffer.from(results.map(({ text }) => text).join(''));
  const blocks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += blockBytes) {
    blocks.push(bytes.subarray(at, at + blockBytes));
  }
  return blocks;
}
