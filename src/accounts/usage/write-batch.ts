// Many requests' rows, and the sums they add to, in a transaction that is open. Rows have a state that only
// moves forward, so the same batch may be written again after an unknown outcome: what it already closed is
// neither changed nor counted a second time. Loads nothing, because a thread of its own runs it on SQLite.

import type { RawTx } from '#db/raw.ts';
import type { UsageRequestRow } from '#db/tables.ts';
import { addTally, tally } from './tally.ts';
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
/** Known from the start. */
const fixed = ['id', 'account_id', 'key_id', 'user_id', 'operation', 'model', 'at'];
const changes = Object.keys(types).filter((name) => !fixed.includes(name));

/** A row that has ended stays as it is. */
const upsert = createUpsert<UsageRequestRow>('usage_requests', {
  types,
  key: ['account_id', 'at', 'id'],
  update: `${changes.map((name) => `${name} = excluded.${name}`).join(', ')}
    where usage_requests.status = 'running'`,
});

/** Rows that run are set down as they are; the others are closed and counted. Each id once. */
export async function writeBatch(tx: RawTx, rows: readonly UsageRequestRow[]): Promise<void> {
  const written = new Set(await upsert(tx, rows));
  const ended = rows.filter(({ status }) => status !== 'running');
  const late = ended.filter((row) => !written.has(row));
  const reopened = await reopen(tx, late);
  if (reopened.length > 0) for (const row of await upsert(tx, late)) written.add(row);
  const closed = ended.filter((row) => written.has(row));
  await addTally(tx, tally(closed, reopened));
}

const reopenOne = `update usage_requests set status = 'running'
  where account_id = ? and at = ? and id = ? and status = 'interrupted' returning *`;

/**
 * Those that others gave up because we were silent for long. What was counted of them then is taken back, and
 * all of it is counted now.
 */
async function reopen(tx: RawTx, rows: readonly UsageRequestRow[]): Promise<UsageRequestRow[]> {
  const found: UsageRequestRow[] = [];
  for (const { account_id, at, id } of rows) {
    const answer = await tx.run<UsageRequestRow>(reopenOne, [account_id, at, id]);
    for (const row of answer.rows) found.push({ ...row, status: 'interrupted' });
  }
  return found;
}
