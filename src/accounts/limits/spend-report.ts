// What this month has cost so far, for people to see: the database's sums, which budgets are held against.

import type { Spend as WireSpend } from '#accounts/schema.ts';
import { toDollars } from '#accounts/usage/dollars.ts';
import { readSpend, type Spend, toMonth } from '#accounts/usage/spend.ts';
import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';

export interface SpendReport {
  ofAccount(accountId: string): Promise<WireSpend>;
  /** One look for all keys of an account. */
  ofKeys(accountId: string): Promise<(keyId: string) => WireSpend>;
  nothing(): WireSpend;
}

export function createSpendReport(db: Database, clock: Clock): SpendReport {
  const month = () => toMonth(clock.now());

  async function ofKeys(accountId: string) {
    const now = month();
    const rows = await db
      .selectFrom('spend')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('month', '=', now)
      .execute();
    const byKey = new Map(
      rows.map(({ key_id, cost_nano, tokens, requests }) => [
        key_id,
        toWire(now, { costNano: cost_nano, tokens, requests }),
      ]),
    );
    return (keyId: string) => byKey.get(keyId) ?? toWire(now, none);
  }

  return {
    ofKeys,
    async ofAccount(accountId) {
      const now = month();
      return toWire(now, await readSpend(db, accountId, null, now));
    },
    nothing: () => toWire(month(), none),
  };
}

const none: Spend = { costNano: 0, tokens: 0, requests: 0 };

const toWire = (month: string, { costNano, tokens, requests }: Spend): WireSpend => ({
  month,
  cost: toDollars(costNano),
  tokens,
  requests,
});
