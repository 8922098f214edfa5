// Servers show that they live by a row; what one that is gone left running ends as interrupted, with what
// was last known of it, and is counted once.

import { sql } from 'kysely';
import { toRawTx } from '#db/raw.ts';
import type { Database, UsageRequestRow } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { addTally, tally } from './tally.ts';

export interface Processes {
  /** Shows that we live. Does nothing when it did so a moment ago. */
  beat(): Promise<void>;
  /** Closes what the dead left. Shows that we live, too. */
  sweep(): Promise<void>;
  leave(): Promise<void>;
}

const beatMs = 10_000;
/** Many beats, so that one slow minute of a database makes nobody dead. */
const deadMs = 90_000;
const forgetMs = 86_400_000;
/** Rows per transaction. */
const sweepRows = 512;

export function createProcesses(
  db: Database,
  clock: Clock,
  { id, alone }: { id: string; alone: boolean },
): Processes {
  let lastBeat = Number.NEGATIVE_INFINITY;

  async function beat(): Promise<void> {
    const now = clock.now();
    // Not a smaller number either: the clock may have been set back.
    if (Math.abs(now - lastBeat) < beatMs) return;
    await db
      .insertInto('usage_processes')
      .values({ id, last_seen: now })
      .onConflict((conflict) => conflict.column('id').doUpdateSet({ last_seen: now }))
      .execute();
    lastBeat = now;
  }

  async function sweep(): Promise<void> {
    await beat();
    for (;;) {
      const rows = await closeSome();
      if (rows.length < sweepRows) break;
      await new Promise((done) => setImmediate(done));
    }
    await db
      .deleteFrom('usage_processes')
      .where('last_seen', '<', clock.now() - forgetMs)
      .execute();
  }

  /** Who comes second waits for the first's transaction, and then finds them closed. */
  function closeSome(): Promise<UsageRequestRow[]> {
    return db.transaction().execute(async (tx) => {
      const living = tx
        .selectFrom('usage_processes')
        .select('id')
        .where('last_seen', '>=', clock.now() - deadMs);
      let left = tx
        .selectFrom('usage_requests')
        .select(['account_id', 'at', 'id'])
        .where('status', '=', sql.lit('running'))
        .where('process', '<>', id)
        .limit(sweepRows);
      if (!alone) left = left.where('process', 'not in', living);
      const rows = await tx
        .updateTable('usage_requests')
        .set({ status: 'interrupted', code: 'server_lost', process: null })
        .where(({ eb, refTuple }) =>
          eb(refTuple('account_id', 'at', 'id'), 'in', left.$asTuple('account_id', 'at', 'id')),
        )
        .where('status', '=', sql.lit('running'))
        .returningAll()
        .execute();
      await addTally(toRawTx(tx), tally(rows));
      return rows;
    });
  }

  return {
    beat,
    sweep,
    async leave() {
      await db.deleteFrom('usage_processes').where('id', '=', id).execute();
    },
  };
}
