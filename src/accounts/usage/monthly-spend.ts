// What a key or an account has spent in a month according to the database, which contains the
// requests that ended at least a moment ago; and the costs that a budget is checked against, which
// contain running requests of other servers too.

import { sql } from 'kysely';
import type { Database } from '#db/tables/tables.ts';
import { toMonthEnd } from './periods.ts';

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

export interface BudgetCosts {
  /** The sum of the month's requests that have ended. */
  readonly spentNano: number;
  /** The cost so far of requests of other servers that are not in the sum yet. */
  readonly otherServersNano: number;
}

/** Selects the servers whose running requests are read from the database. */
export interface OtherServersFilter {
  /** The server to leave out, which counts its own requests. */
  readonly processId: string;
  /** Only servers that were last seen before this time are included. */
  readonly seenBefore: number;
}

/**
 * Reads both costs in one statement, so that a request that ends meanwhile is in exactly one of them. For
 * PostgreSQL only: a SQLite database has one server.
 */
export async function readBudgetCosts(
  db: Database,
  { accountId, keyId, month }: { accountId: string; keyId: string | null; month: string },
  { processId, seenBefore }: OtherServersFilter,
): Promise<BudgetCosts> {
  const from = Date.parse(`${month}-01T00:00:00Z`);
  const refOf = (name: string) =>
    db.selectFrom('usage_names').select('ref').where('name', '=', name);
  const spent = db
    .selectFrom('spend')
    .select('cost_nano')
    .where('account_id', '=', accountId)
    .where('key_id', '=', keyId ?? '')
    .where('month', '=', month);
  const servers = db
    .selectFrom('usage_processes')
    .select('id')
    .where('id', '<>', processId)
    .where('last_seen', '<', seenBefore);
  let running = db
    .selectFrom('usage_requests')
    .select(({ fn }) => fn.sum<number>('cost_nano').as('cost_nano'))
    .where('status', '=', sql.lit('running'))
    // PostgreSQL evaluates an array first, and then finds the rows by the index of running requests.
    .where(sql<boolean>`process = any(array(${servers}))`)
    .where('account_ref', '=', refOf(accountId))
    .where('at', '>=', from)
    .where('at', '<', toMonthEnd(from));
  if (keyId !== null) running = running.where('key_ref', '=', refOf(keyId));
  const row = await db
    .selectNoFrom([spent.as('spent'), running.as('running')])
    .executeTakeFirstOrThrow();
  return { spentNano: row.spent ?? 0, otherServersNano: row.running ?? 0 };
}
