// What a key or an account has spent in a month according to the database, which contains the requests that
// ended at least a moment ago.

import type { Database } from '#db/tables/tables.ts';

export interface MonthlySpend {
  readonly costNano: number;
  readonly tokens: number;
  readonly requests: number;
}

/** A null key id means the account as a whole. The month is in the format of `toMonth`. */
export async function readMonthlySpend(
  db: Database,
  accountId: string,
  keyId: string | null,
  month: string,
): Promise<MonthlySpend> {
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

/** The UTC month of a time, e.g. `2026-11`. */
export const toMonth = (at: number): string => new Date(at).toISOString().slice(0, 7);

/** The end of the UTC month that contains the time. */
export function toMonthEnd(at: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}
