// Writes many requests' rows in one transaction, together with the sums they add to. Rows have a state
// that only moves forward, so the same batch may be written again after an unknown outcome: what it
// already closed is neither changed nor counted a second time.

import type { Database, UsageRequestRow } from '../../db/tables.ts';
import { addTally, tally } from './tally.ts';
import { createUpsert } from './upsert.ts';

export interface Batch {
  /** Rows that run are set down as they are; the others are closed and counted. Each id once. */
  write(rows: readonly UsageRequestRow[]): Promise<void>;
}

export function createBatch(db: Database): Batch {
  const upsert = createUpsert(db);
  return {
    async write(rows) {
      if (rows.length === 0) return;
      await db.transaction().execute(async (tx) => {
        const written = await upsert(tx, rows);
        const closed = rows.filter(({ id, status }) => status !== 'running' && written.has(id));
        await addTally(tx, tally(closed));
      });
    },
  };
}
