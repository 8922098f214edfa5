// Writes many requests' rows in one transaction, together with the sums they add to. Rows have a state
// that only moves forward, so the same batch may be written again after an unknown outcome: what it
// already closed is neither changed nor counted a second time.

import type { Database, Tx, UsageRequestRow } from '../../db/tables.ts';
import { withoutSync } from '../../db/without-sync.ts';
import { addTally, tally } from './tally.ts';
import { createUpsert } from './upsert.ts';

export interface Batch {
  /** Rows that run are set down as they are; the others are closed and counted. Each id once. */
  write(rows: readonly UsageRequestRow[]): Promise<void>;
}

export function createBatch(db: Database): Batch {
  const upsert = createUpsert(db);

  async function writeIn(tx: Tx, rows: readonly UsageRequestRow[]): Promise<void> {
    const written = await upsert(tx, rows);
    const late = rows.filter(({ id, status }) => status !== 'running' && !written.has(id));
    const reopened = late.length === 0 ? [] : await reopen(tx, late);
    if (reopened.length > 0) for (const id of await upsert(tx, late)) written.add(id);
    const closed = rows.filter(({ id, status }) => status !== 'running' && written.has(id));
    await addTally(tx, tally(closed, reopened));
  }

  return {
    async write(rows) {
      if (rows.length === 0) return;
      await withoutSync(db, (one) => one.transaction().execute((tx) => writeIn(tx, rows)));
    },
  };
}

/**
 * Those that others gave up because we were silent for long. What was counted of them then is taken back, and
 * all of it is counted now.
 */
async function reopen(tx: Tx, rows: readonly UsageRequestRow[]): Promise<UsageRequestRow[]> {
  const ids = rows.map(({ id }) => id);
  const found = await tx
    .updateTable('usage_requests')
    .set({ status: 'running' })
    .where('id', 'in', ids)
    .where('status', '=', 'interrupted')
    .returningAll()
    .execute();
  return found.map((row) => ({ ...row, status: 'interrupted' }));
}
