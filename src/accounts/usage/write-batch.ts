// Writes the rows of many requests, and the sums they add to, in an open transaction. The status of a row only
// moves forward, so a batch may be written again after an unknown outcome: rows that it already closed are neither
// changed nor counted again. Imports no Kysely, because the writer's thread runs it on SQLite.

import type { RawTx } from '#db/raw.ts';
import type { StoredUsageRow, UsageRequestRow } from '#db/tables/tables.ts';
import { toRequestRows, toStoredRows } from './names.ts';
import { addSums, sumRows } from './sums.ts';
import { createUpsert, type UpsertOptions } from './upsert.ts';

const types: UpsertOptions<StoredUsageRow>['types'] = {
  id: 'text',
  account_ref: 'bigint',
  key_ref: 'bigint',
  user_ref: 'bigint',
  operation_ref: 'bigint',
  model_ref: 'bigint',
  served_model_ref: 'bigint',
  backend_ref: 'bigint',
  at: 'bigint',
  status: 'text',
  code_ref: 'bigint',
  prompt_tokens: 'bigint',
  completion_tokens: 'bigint',
  cached_tokens: 'bigint',
  first_token_ms: 'bigint',
  duration_ms: 'bigint',
  cost_nano: 'bigint',
  reserved: 'bigint',
  process: 'text',
};
/** Columns that never change. */
const fixed = ['id', 'account_ref', 'key_ref', 'user_ref', 'operation_ref', 'model_ref', 'at'];
const changing = Object.keys(types).filter((name) => !fixed.includes(name));

/** A row that has ended is not changed. */
const upsert = createUpsert<StoredUsageRow>('usage_requests', {
  types,
  key: ['account_ref', 'at', 'id'],
  update: `${changing.map((name) => `${name} = excluded.${name}`).join(', ')}
    where usage_requests.status = 'running'`,
});

/** Running rows are stored as they are; ended rows are closed and counted. An id must not occur twice. */
export async function writeBatch(tx: RawTx, rows: readonly UsageRequestRow[]): Promise<void> {
  const stored = await toStoredRows(tx, rows);
  const written = new Set(await upsert(tx, stored));
  const late = stored.filter((row) => row.status !== 'running' && !written.has(row));
  const reopened = await reopen(tx, late);
  if (reopened.length > 0) for (const row of await upsert(tx, late)) written.add(row);
  const closed = rows.filter(
    ({ status }, index) => status !== 'running' && written.has(stored[index] as StoredUsageRow),
  );
  await addSums(tx, sumRows(closed, reopened));
}

const reopenOne = `update usage_requests set status = 'running'
  where account_ref = ? and at = ? and id = ? and status = 'interrupted' returning *`;

/**
 * Reopens rows that another server marked as interrupted because this one was silent for too long. Returns them as
 * they were counted then, so that the caller can subtract them.
 */
async function reopen(tx: RawTx, rows: readonly StoredUsageRow[]): Promise<UsageRequestRow[]> {
  const found: StoredUsageRow[] = [];
  for (const { account_ref, at, id } of rows) {
    const result = await tx.run<StoredUsageRow>(reopenOne, [account_ref, at, id]);
    for (const row of result.rows) found.push({ ...row, status: 'interrupted' });
  }
  return found.length === 0 ? [] : toRequestRows(tx, found);
}
