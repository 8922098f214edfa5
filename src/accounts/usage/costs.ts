// What budgets are held against: what the month has cost by its sum, and what requests have cost so far that
// other servers run, or left running when they died. Apart from spend.ts, which the thread that writes loads.

import { sql } from 'kysely';
import type { Database } from '#db/tables.ts';
import { toMonthEnd } from './spend.ts';

export interface Costs {
  readonly spentNano: number;
  /** In no sum yet. */
  readonly elsewhereNano: number;
}

/** A server, and whose requests it can't know of but by the database. */
export interface Elsewhere {
  /** Its own requests it knows itself. */
  readonly processId: string;
  /** Only of servers that were last seen before this. */
  readonly seenBefore: number;
}

/**
 * The month's cost, and beside it that of requests elsewhere that are in no sum yet. One statement: a request
 * that ends meanwhile is in one of the two, never in both or neither. For PostgreSQL, as SQLite has one server.
 */
export async function readCosts(
  db: Database,
  { accountId, keyId, month }: { accountId: string; keyId: string | null; month: string },
  { processId, seenBefore }: Elsewhere,
): Promise<Costs> {
  const from = Date.parse(`${month}-01T00:00:00Z`);
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
  let elsewhere = db
    .selectFrom('usage_requests')
    .select(({ fn }) => fn.sum<number>('cost_nano').as('cost_nano'))
    .where('status', '=', sql.lit('running'))
    // An array is known before the rows are looked for, so that they are found by the index of those that run.
    .where(sql<boolean>`process = any(array(${servers}))`)
    .where('account_id', '=', accountId)
    .where('at', '>=', from)
    .where('at', '<', toMonthEnd(from));
  if (keyId !== null) elsewhere = elsewhere.where('key_id', '=', keyId);
  const row = await db
    .selectNoFrom([spent.as('spent'), elsewhere.as('elsewhere')])
    .executeTakeFirstOrThrow();
  return { spentNano: row.spent ?? 0, elsewhereNano: row.elsewhere ?? 0 };
}
