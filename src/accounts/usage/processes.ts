// Each server proves that it is alive by a heartbeat row. Requests that a dead server left running are closed as
// interrupted, with what was last known of them, and counted once.

import { sql } from 'kysely';
import { addNames, toDay, toRequestRows } from '#accounts/usage/writing/names.ts';
import { addSums, sumRows } from '#accounts/usage/writing/write-batch.ts';
import { toRawTx } from '#db/raw.ts';
import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';

export interface Processes {
  /** Writes a heartbeat, unless the last one is recent. */
  beat(): Promise<void>;
  /** Writes a heartbeat and closes the requests of dead servers. */
  sweep(): Promise<void>;
  /** Removes this server's heartbeat. */
  leave(): Promise<void>;
}

const beatMs = 10_000;
/** Nine heartbeats, so that a database that is slow for a minute declares no server dead. */
const deadMs = 90_000;
const heartbeatRetentionMs = 86_400_000;
/** Maximum rows closed in one transaction. */
const sweepRows = 512;
/** The code of an interrupted request. */
const code = 'server_lost';

export function createProcesses(
  db: Database,
  clock: Clock,
  /** If `singleServer` is set, every running request that is not this server's is an orphan. */
  { id, singleServer }: { id: string; singleServer: boolean },
): Processes {
  let lastBeat = Number.NEGATIVE_INFINITY;

  async function beat(): Promise<void> {
    const now = clock.now();
    // The absolute difference, because the clock may have been set back.
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
      if ((await closeOrphans(db, clock.now(), { id, singleServer })) < sweepRows) break;
      await new Promise((done) => setImmediate(done));
    }
    await db
      .deleteFrom('usage_processes')
      .where('last_seen', '<', clock.now() - heartbeatRetentionMs)
      .execute();
  }

  return {
    beat,
    sweep,
    async leave() {
      await db.deleteFrom('usage_processes').where('id', '=', id).execute();
    },
  };
}

/** If two servers sweep at once, the second waits for the first's transaction and finds the rows closed. */
function closeOrphans(
  db: Database,
  now: number,
  { id, singleServer }: { id: string; singleServer: boolean },
): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const alive = tx
      .selectFrom('usage_processes')
      .select('id')
      .where('last_seen', '>=', now - deadMs);
    let orphans = tx
      .selectFrom('usage_requests')
      .select(['account_ref', 'at', 'id'])
      .where('status', '=', sql.lit('running'))
      .where('process', '<>', id)
      .limit(sweepRows);
    if (!singleServer) orphans = orphans.where('process', 'not in', alive);
    const raw = toRawTx(tx);
    const names = await addNames(raw, new Map([[code, toDay(now)]]));
    const rows = await tx
      .updateTable('usage_requests')
      .set({ status: 'interrupted', code_ref: names.get(code) as number, process: null })
      .where(({ eb, refTuple }) =>
        eb(refTuple('account_ref', 'at', 'id'), 'in', orphans.$asTuple('account_ref', 'at', 'id')),
      )
      .where('status', '=', sql.lit('running'))
      .returningAll()
      .execute();
    if (rows.length > 0) await addSums(raw, sumRows(await toRequestRows(raw, rows)));
    return rows.length;
  });
}
