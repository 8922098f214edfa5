// Forgets what is older than was asked to be kept, a little at a time, so that nothing waits for it.

import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';

export interface UsageRetention {
  sweep(): Promise<void>;
}

const dayMs = 86_400_000;
const deleteRows = 500;
/** Hours of one account that go at once; each holds a row per key, model and backend. */
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
      await breathe();
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
      await breathe();
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

const breathe = () => new Promise((done) => setImmediate(done));
