// What a key or an account spent in a month, as it stands in the database: requests that ended at least
// a moment ago.

import type { Database } from '#db/tables.ts';

export interface Spend {
  readonly costNano: number;
  readonly tokens: number;
  readonly requests: number;
}

/** The key id null means the account as a whole. The month is `toMonth`'s. */
export async function readSpend(
  db: Database,
  accountId: string,
  keyId: string | null,
  month: string,
): Promise<Spend> {
  const row = await db
    .selectFrom('spend')
    .select(['cost_nano', 'tokens', 'requests'])
    .where('account_id', '=', accountId)
    .where('key_id', '=', keyId ?? '')
    .where('month', '=', month)
    .executeTakeFirst();
  if (row === undefined) return { costNano: 0, tokens: 0, requests: 0 };
  return { costNano: row.cost_nano, tokens: row.tokens, requests: row.requests };
}

/** UTC, e.g. `2026-11`. */
export const toMonth = (at: number): string => new Date(at).toISOString().slice(0, 7);

/** Of the month it lies in. */
export function toMonthEnd(at: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}
