// Counts attempts in the database, so that neither a restart nor another replica gives an attacker more guesses.
// Each attempt is one atomic upsert.

import { sql } from 'kysely';
import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';

const windowMs = 15 * 60_000;

export interface Throttle {
  /** Counts one attempt. `waitMs` is 0 if it is allowed; `isFirst` is true for the first one that is not. */
  attempt(key: string, limit: number): Promise<{ waitMs: number; isFirst: boolean }>;
  /** Takes back an attempt that succeeded. */
  forgive(key: string): Promise<void>;
  /** Deletes expired counts. */
  sweep(): Promise<void>;
}

export function createThrottle(db: Database, clock: Clock): Throttle {
  return {
    async attempt(key, limit) {
      const now = clock.now();
      const cut = now - windowMs;
      const row = await db
        .insertInto('throttles')
        .values({ key, attempts: 1, window_started_at: now })
        .onConflict((conflict) =>
          conflict.column('key').doUpdateSet({
            attempts: sql<number>`case when throttles.window_started_at <= ${cut} then 1 else throttles.attempts + 1 end`,
            window_started_at: sql<number>`case when throttles.window_started_at <= ${cut} then excluded.window_started_at else throttles.window_started_at end`,
          }),
        )
        .returning(['attempts', 'window_started_at'])
        .executeTakeFirstOrThrow();
      const waitMs = row.attempts <= limit ? 0 : row.window_started_at + windowMs - now;
      return { waitMs, isFirst: row.attempts === limit + 1 };
    },
    async forgive(key) {
      await db
        .updateTable('throttles')
        .set((row) => ({ attempts: row('attempts', '-', 1) }))
        .where('key', '=', key)
        .where('attempts', '>', 0)
        .execute();
    },
    async sweep() {
      const cut = clock.now() - windowMs;
      await db.deleteFrom('throttles').where('window_started_at', '<=', cut).execute();
    },
  };
}
