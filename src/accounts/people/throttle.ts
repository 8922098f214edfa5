// Counts attempts in the database, so that neither a restart nor another replica gives an attacker more guesses.
// Each attempt is one atomic upsert. The number of rows is bounded: subjects are hashed to slots.

import { sql } from 'kysely';
import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { hashToken } from '#lib/secrets/secrets.ts';

const windowMs = 15 * 60_000;
/**
 * 65,536 slots of each kind. Subjects that share one also share its attempts. The installation's id is hashed too, so
 * that a stranger can't choose an address that shares the slot of another.
 */
const slotDigits = 4;

export type ThrottleKind =
  | 'join-from'
  | 'login-from'
  | 'login-as'
  | 'login-as-from'
  | 'login-device'
  | 'password';

export interface Attempt {
  kind: ThrottleKind;
  /** What is counted, such as a network address or a user. */
  subject: string;
  /** Maximum attempts in 15 minutes. */
  limit: number;
}

export interface Throttle {
  /** Counts one attempt. `waitMs` is 0 if it is allowed; `isFirst` is true for the first one that is not. */
  attempt(attempt: Attempt): Promise<{ waitMs: number; isFirst: boolean }>;
  /** Takes back an attempt that succeeded. */
  reset(attempt: Attempt): Promise<void>;
  /** Deletes expired counts. */
  sweep(): Promise<void>;
}

export function createThrottle(db: Database, clock: Clock): Throttle {
  let installation: string | undefined;

  async function toKey({ kind, subject }: Omit<Attempt, 'limit'>): Promise<string> {
    installation ??= (await db.selectFrom('installation').select('id').executeTakeFirstOrThrow())
      .id;
    return `${kind}:${hashToken(`${installation} ${subject}`).slice(0, slotDigits)}`;
  }

  return {
    async attempt({ limit, ...of }) {
      const now = clock.now();
      const cut = now - windowMs;
      const row = await db
        .insertInto('throttles')
        .values({ key: await toKey(of), attempts: 1, window_started_at: now })
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
    async reset(attempt) {
      await db
        .updateTable('throttles')
        .set((row) => ({ attempts: row('attempts', '-', 1) }))
        .where('key', '=', await toKey(attempt))
        .where('attempts', '>', 0)
        .execute();
    },
    async sweep() {
      const cut = clock.now() - windowMs;
      await db.deleteFrom('throttles').where('window_started_at', '<=', cut).execute();
    },
  };
}
