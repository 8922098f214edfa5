// Batches in the database. A process works on a batch while it holds its lease.

import { type ExpressionBuilder, sql } from 'kysely';
import { isCallerGone } from '#accounts/caller-gone.ts';
import { writeBatch } from '#accounts/usage/writing/write-batch.ts';
import { Lease, type LeaseOptions, released } from '#db/lease.ts';
import { toRawTx } from '#db/raw.ts';
import type { BatchRow, BatchState } from '#db/tables/batch-rows.ts';
import type { Database, Tables, Tx } from '#db/tables/tables.ts';
import type { UsageRequestRow } from '#db/tables/usage-rows.ts';
import { appendBlocks, blockBytes, newFile } from '#inference/apis/files/files.ts';
import type { Clock } from '#lib/clock.ts';
import type { LineResult } from './line.ts';

export const liveStates = ['validating', 'in_progress', 'finalizing', 'cancelling'] as const;

export interface RowsOptions extends LeaseOptions {
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
  readonly #keepMs: number;
  readonly #lease: Lease<'batches'>;

  constructor(db: Database, clock: Clock, options: RowsOptions) {
    this.#db = db;
    this.#clock = clock;
    this.#keepMs = options.keepMs;
    this.#lease = new Lease('batches', clock, options);
  }

  /** Claims the oldest batch that has no live runner; undefined if there is none. */
  claim(skip: {
    ids: readonly string[];
    accounts: readonly string[];
  }): Promise<BatchRow | undefined> {
    return this.#lease.claim(this.#db, (row) =>
      row.and([
        row('state', 'in', liveStates),
        ...(skip.ids.length > 0 ? [row('id', 'not in', skip.ids)] : []),
        ...(skip.accounts.length > 0 ? [row('account_id', 'not in', skip.accounts)] : []),
      ]),
    );
  }

  /** Renews the lease. Returns undefined if this process has lost the batch. */
  renew(id: string): Promise<BatchRow | undefined> {
    return this.#lease.update(this.#db, id, this.#lease.held(), isIn(liveStates));
  }

  async release(id: string): Promise<void> {
    await this.#lease.update(this.#db, id, released, isIn(liveStates));
  }

  /** Stores the outcome of the validation. Nothing changes if the batch was cancelled meanwhile. */
  async fail(id: string, total: number, errors: readonly unknown[]): Promise<void> {
    const ended = { failed_at: this.#clock.now(), ...released };
    const values = { state: 'failed' as const, total, errors: JSON.stringify(errors), ...ended };
    await this.#lease.update(this.#db, id, values, isIn(['validating']));
  }

  /** Creates the files of the results and lets lines run. */
  begin({ id, account_id: accountId }: BatchRow, total: number): Promise<void> {
    return this.#db.transaction().execute(async (tx) => {
      const now = this.#clock.now();
      const output = newFile(accountId, 'batch_output', now);
      const error = newFile(accountId, 'batch_output', now);
      const files = { output_file_id: output.id, error_file_id: error.id };
      const values = { state: 'in_progress' as const, total, in_progress_at: now, ...files };
      const begun = await this.#lease.update(tx, id, values, isIn(['validating']));
      if (begun === undefined) return;
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
      const added = {
        completed: sql<number>`completed + ${good.length}`,
        failed: sql<number>`failed + ${bad.length}`,
        done_offset: doneOffset,
        done_ahead: JSON.stringify(doneAhead),
      };
      const values = { ...added, ...this.#lease.held() };
      const owned = await this.#lease.update(tx, id, values, isIn(['in_progress', 'finalizing']));
      if (owned === undefined) return false;
      if (good.length > 0) await appendBlocks(tx, output_file_id as string, toBlocks(good));
      if (bad.length > 0) await appendBlocks(tx, error_file_id as string, toBlocks(bad));
      if (usage.length > 0) await writeBatch(toRawTx(tx), usage);
      return true;
    });
  }

  /** All lines are done, or will be given up if the batch has expired. */
  finalize(id: string, isExpired: boolean): Promise<BatchRow | undefined> {
    const now = this.#clock.now();
    const state = 'finalizing' as const;
    const values = { state, finalizing_at: now, ...(isExpired && { expired_at: now }) };
    return this.#lease.update(this.#db, id, values, isIn(['in_progress']));
  }

  /** Ends a batch and publishes its results. */
  end(row: BatchRow, state: 'completed' | 'expired' | 'cancelled'): Promise<void> {
    const now = this.#clock.now();
    const at = state === 'completed' ? { completed_at: now } : {};
    const cancelled = state === 'cancelled' ? { cancelled_at: now } : {};
    const values = { state, ...at, ...cancelled, ...released };
    return this.#db.transaction().execute(async (tx) => {
      const ended = await this.#lease.update(
        tx,
        row.id,
        values,
        isIn(['finalizing', 'cancelling']),
      );
      if (ended === undefined) return;
      await this.#publish(tx, row, now);
    });
  }

  /** Stops a batch whose caller may no longer use the account. Returns undefined if there was nothing to stop. */
  revoke(id: string, errors: readonly unknown[]): Promise<BatchRow | undefined> {
    const now = this.#clock.now();
    const state = 'cancelling' as const;
    const values = { state, cancelling_at: now, errors: JSON.stringify(errors) };
    return this.#lease.update(this.#db, id, values, (row) =>
      row.and([row('state', 'in', ['validating', 'in_progress']), isCallerGone('batches', now)]),
    );
  }

  /** Deletes batches that ended long ago. */
  async sweep(): Promise<void> {
    await this.#db
      .deleteFrom('batches')
      .where('state', 'not in', liveStates)
      .where('expires_at', '<', this.#clock.now() - this.#keepMs)
      .execute();
  }

  async #publish(tx: Tx, row: BatchRow, now: number): Promise<void> {
    const ids = [row.output_file_id, row.error_file_id].filter((id) => id !== null);
    if (ids.length === 0) return;
    const expires_at = now + (row.output_keep_ms ?? this.#keepMs);
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
}

const isIn = (states: readonly BatchState[]) => (row: ExpressionBuilder<Tables, 'batches'>) =>
  row('state', 'in', states);

function toBlocks(results: readonly LineResult[]): Buffer[] {
  const bytes = Buffer.from(results.map(({ text }) => text).join(''));
  const blocks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += blockBytes) {
    blocks.push(bytes.subarray(at, at + blockBytes));
  }
  return blocks;
}
