// This month's cost so far, as shown to users: the sums in the database that budgets are checked against.

import type { Spend } from '#accounts/schema.ts';
import { toDollars } from '#accounts/usage/dollars.ts';
import { type MonthlySpend, readMonthlySpend } from '#accounts/usage/monthly-spend.ts';
import { toMonth } from '#accounts/usage/periods.ts';
import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';

export interface SpendReport {
  ofAccount(accountId: string): Promise<Spend>;
  /** One query for all the keys. */
  ofKeys(accountId: string, keyIds: readonly string[]): Promise<(keyId: string) => Spend>;
  nothing(): Spend;
}

export function createSpendReport(db: Database, clock: Clock): SpendReport {
  const month = () => toMonth(clock.now());

  async function ofKeys(accountId: string, keyIds: readonly string[]) {
    const now = month();
    const rows = await db
      .selectFrom('spend')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('month', '=', now)
      .where('key_id', 'in', ['', ...keyIds])
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
      return toWire(now, await readMonthlySpend(db, accountId, null, now));
    },
    nothing: () => toWire(month(), none),
  };
}

const none: MonthlySpend = { costNano: 0, tokens: 0, requests: 0 };

const toWire = (month: string, { costNano, tokens, requests }: MonthlySpend): Spend => ({
  month,
  cost: toDollars(costNano),
  tokens,
  requests,
});
