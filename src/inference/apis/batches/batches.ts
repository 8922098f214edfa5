// Batches as clients see them: created, read, listed and cancelled. The runner does the rest.

import { countRows } from '#db/count-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { BatchRow } from '#db/tables/batch-rows.ts';
import type { Database } from '#db/tables/tables.ts';
import { findEndpoint } from '#inference/apis/apis.ts';
import { fileNotFound } from '#inference/apis/files/errors.ts';
import { type ListOptions, type ListPage, readListPage } from '#inference/apis/files/list-page.ts';
import type { Caller } from '#inference/request.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { batchEnded, batchNotFound, tooManyBatches, wrongEndpoint, wrongWindow } from './errors.ts';
import { liveStates } from './rows.ts';
import type { NewBatch } from './schema.ts';

export interface Batches {
  create(caller: Caller, batch: NewBatch): Promise<BatchRow>;
  get(accountId: string, id: string): Promise<BatchRow>;
  /** Newest first. */
  list(accountId: string, page: Omit<ListOptions, 'order'>): Promise<ListPage<BatchRow>>;
  cancel(accountId: string, id: string): Promise<BatchRow>;
}

const batchUrls = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/messages',
  '/v1/embeddings',
];
const maxLive = 1_000;
const maxWindowMs = 30 * 86_400_000;
const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `wake` is called when there is something for the runner to do. */
export function createBatches(db: Database, clock: Clock, wake: () => void): Batches {
  const of = (accountId: string) =>
    db.selectFrom('batches').selectAll().where('account_id', '=', accountId);

  async function get(accountId: string, id: string): Promise<BatchRow> {
    const row = await of(accountId).where('id', '=', id).executeTakeFirst();
    if (row === undefined) throw batchNotFound(id);
    return row;
  }

  return {
    async create(caller, batch) {
      const row = toRow(caller, batch, clock.now());
      await insert(db, row);
      wake();
      return row;
    },
    get,
    list: (accountId, page) => readListPage(of(accountId), { ...page, order: 'desc' }),
    async cancel(accountId, id) {
      const row = await db
        .updateTable('batches')
        .set({ state: 'cancelling', cancelling_at: clock.now() })
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .where('state', 'in', ['validating', 'in_progress'])
        .returningAll()
        .executeTakeFirst();
      if (row !== undefined) {
        wake();
        return row;
      }
      const ended = await get(accountId, id);
      if (ended.state !== 'cancelling') throw batchEnded(ended.state);
      return ended;
    },
  };
}

function toRow({ accountId, keyId, userId }: Caller, batch: NewBatch, now: number): BatchRow {
  const urls = batchUrls.filter((url) => findEndpoint(url) !== undefined);
  if (!urls.includes(batch.endpoint)) throw wrongEndpoint(batch.endpoint, urls);
  const keepSeconds = batch.output_expires_after?.seconds;
  return {
    id: `batch_${newId()}`,
    account_id: accountId,
    key_id: keyId,
    user_id: userId,
    endpoint: batch.endpoint,
    completion_window: batch.completion_window,
    metadata: batch.metadata == null ? null : JSON.stringify(batch.metadata),
    input_file_id: batch.input_file_id,
    output_file_id: null,
    error_file_id: null,
    output_keep_ms: keepSeconds === undefined ? null : keepSeconds * 1000,
    state: 'validating',
    errors: null,
    total: 0,
    completed: 0,
    failed: 0,
    done_offset: 0,
    done_ahead: '[]',
    created_at: now,
    expires_at: now + toWindowMs(batch.completion_window),
    in_progress_at: null,
    finalizing_at: null,
    completed_at: null,
    failed_at: null,
    expired_at: null,
    cancelling_at: null,
    cancelled_at: null,
    runner: null,
    lease_until: null,
  };
}

function toWindowMs(window: string): number {
  const ms = Number.parseInt(window, 10) * unitMs[window.at(-1) as keyof typeof unitMs];
  if (ms > maxWindowMs) throw wrongWindow();
  return ms;
}

/** The account is locked, so that the file is not deleted at the same time. */
const insert = (db: Database, row: BatchRow): Promise<void> =>
  db.transaction().execute(async (tx) => {
    await lockAccount(tx, row.account_id);
    const own = tx.selectFrom('batches').where('account_id', '=', row.account_id);
    if ((await countRows(own.where('state', 'in', liveStates))) >= maxLive)
      throw tooManyBatches(maxLive);
    const file = await tx
      .selectFrom('files')
      .select('id')
      .where('id', '=', row.input_file_id)
      .where('account_id', '=', row.account_id)
      .where('purpose', '=', 'batch')
      .where('state', '=', 'ready')
      .where('expires_at', '>', row.created_at)
      .executeTakeFirst();
    if (file === undefined) throw fileNotFound(row.input_file_id, 'input_file_id');
    await tx.insertInto('batches').values(row).execute();
  });
