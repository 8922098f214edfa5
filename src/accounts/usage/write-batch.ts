// Writes the rows of many requests, and the sums they add to, in an open transaction. The status of a row only
// moves forward, so a batch may be written again after an unknown outcome: rows that it already closed are neither
// changed nor counted again. Imports no Kysely, because the writer's thread runs it on SQLite.

import type { RawTx } from '#db/raw.ts';
import type { UsageRequestRow } from '#db/tables.ts';
import { addSums, sumRows } from './sums.ts';
import { createUpsert, type UpsertOptions } from './upsert.ts';

const types: UpsertOptions<UsageRequestRow>['types'] = {
  id: 'text',
  account_id: 'text',
  key_id: 'text',
  user_id: 'text',
  operation: 'text',
  model: 'text',
  served_model: 'text',
  backend: 'text',
  at: 'bigint',
  status: 'text',
  code: 'text',
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
const fixed = ['id', 'account_id', 'key_id', 'user_id', 'operation', 'model', 'at'];
const changing = Object.keys(types).filter((name) => !fixed.includes(name));

/** A row that has ended is not changed. */
const upsert = createUpsert<UsageRequestRow>('usage_requests', {
  types,
  key: ['account_id', 'at', 'id'],
  update: `${changing.map((name) => `${name} = excluded.${name}`).join(', ')}
    where usage_requests.status = 'running'`,
});

/** Running rows are stored as they are; ended rows are closed and counted. An id must not occur twice. */
export async function writeBatch(tx: RawTx, rows: readonly UsageRequestRow[]): Promise<void> {
  const written = new Set(await upsert(tx, rows));
  const ended = rows.filter(({ status }) => status !== 'running');
  const late = ended.filter((row) => !written.has(row));
  const reopened = await reopen(tx, late);
  if (reopened.length > 0) for (const row of await upsert(tx, late)) written.add(row);
  const closed = ended.filter((row) => written.has(row));
  await addSums(tx, sumRows(closed, reopened));
}

const reopenOne = `update usage_requests set status = 'running'
  where account_id = ? and at = ? and id = ? and status = 'interrupted' returning *`;

/**
 * Reopens rows that another server marked as interrupted because this one was silent for too long. Returns them as
 * they were counted then, so that the caller can subtract them.
 */
async function reopen(tx: RawTx, rows: readonly UsageRequestRow[]): Promise<UsageRequestRow[]> {
  const found: UsageRequestRow[] = [];
  for (const { account_id, at, id } of rows) {
    const result = await tx.run<UsageRequestRow>(reopenOne, [account_id, at, id]);
    for (const row of result.rows) found.push({ ...row, status: 'interrupted' });
  }
  return found;
}
