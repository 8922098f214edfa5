// Deletes usage that is older than the configured retention, in small steps that hold up no other query.

import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';

export interface UsageRetention {
  sweep(): Promise<void>;
}

const dayMs = 86_400_000;
/** Requests deleted at once. */
const deleteRows = 500;
/** Hours of one account deleted at once; each has a row per key, model and backend. */
const deleteHours = 24;

export function createUsageRetention(
  db: Database,
  clock: Clock,
  { requestDays, hourDays }: { requestDays: number; hourDays: number },
): UsageRetention {
  async function sweepRequests(accountId: string): Promise<void> {
    const before = clock.now() - requestDays * dayMs;
    for (;;) {
      const old = db
        .selectFrom('usage_requests')
        .select(['account_id', 'at', 'id'])
        .where('account_id', '=', accountId)
        .where('at', '<', before)
        .orderBy('at')
        .limit(deleteRows);
      const { numDeletedRows } = await db
        .deleteFrom('usage_requests')
        .where(({ eb, refTuple }) =>
          eb(refTuple('account_id', 'at', 'id'), 'in', old.$asTuple('account_id', 'at', 'id')),
        )
        .executeTakeFirst();
      if (numDeletedRows < deleteRows) return;
      await yieldToEventLoop();
    }
  }

  async function sweepHours(accountId: string): Promise<void> {
    const before = clock.now() - hourDays * dayMs;
    for (;;) {
      const oldest = await db
        .selectFrom('usage_hours')
        .select('hour')
        .where('account_id', '=', accountId)
        .where('hour', '<', before)
        .orderBy('hour')
        .limit(1)
        .executeTakeFirst();
      if (oldest === undefined) return;
      await db
        .deleteFrom('usage_hours')
        .where('account_id', '=', accountId)
        .where('hour', '<', Math.min(before, oldest.hour + deleteHours * 3_600_000))
        .execute();
      await yieldToEventLoop();
    }
  }

  return {
    async sweep() {
      const accounts = await db.selectFrom('accounts').select('id').execute();
      for (const { id } of accounts) {
        await sweepRequests(id);
        await sweepHours(id);
      }
    },
  };
}

const yieldToEventLoop = () => new Promise((done) => setImmediate(done));
