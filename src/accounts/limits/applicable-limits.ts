// Reads from the database which limits apply to a request, and what the month has cost so far.

import {
  type BudgetCosts,
  readBudgetCosts,
  readMonthlySpend,
} from '#accounts/usage/monthly-spend.ts';
import { toMonth, toMonthEnd } from '#accounts/usage/write-batch.ts';
import type { Database, LimitColumns, Tx } from '#db/tables.ts';
import { hasLimit, toLimitSet } from './limit-set.ts';
import type { LimitScope } from './store.ts';

export interface ApplicableLimits {
  /** The key and the account, as far as each has a limit. */
  readonly scopes: readonly LimitScope[];
  readonly month: string;
  readonly monthEndsAt: number;
}

/** How this server learns what requests of other servers on the same database cost. */
export interface OtherServers {
  /** This server's id in the rows of its requests. */
  processId: string;
  /**
   * Requests of a server that was seen within this time are counted in the shared store. Null if there is no
   * shared store.
   */
  silentMs: number | null;
}

export interface ApplicableQuery {
  accountId: string;
  /** Null for a signed-in user. */
  keyId: string | null;
  /** Null if no other server uses the database. */
  otherServers: OtherServers | null;
  now: number;
}

export async function readApplicableLimits(
  db: Database,
  query: ApplicableQuery,
): Promise<ApplicableLimits> {
  const { accountId, keyId, now } = query;
  const scopes: LimitScope[] = [];
  const account = await readAccountLimits(db, accountId);
  const key = keyId === null ? undefined : await findKeyLimits(db, keyId);
  if (key !== undefined) await addScope('key', key, keyId);
  await addScope('account', account, null);
  return { scopes, month: toMonth(now), monthEndsAt: toMonthEnd(now) };

  async function addScope(kind: LimitScope['kind'], row: LimitColumns, scopeKey: string | null) {
    const limits = toLimitSet(row);
    if (!hasLimit(limits)) return;
    const hasBudget = limits.monthlyBudgetNano !== null;
    const costs = hasBudget ? await readCosts(db, query, scopeKey) : noCosts;
    scopes.push({ kind, id: scopeKey ?? accountId, accountId, limits, ...costs });
  }
}

/** Limits that were read in an earlier month, for the month of `now`: nothing is spent in it yet. */
export function inMonthOf(limits: ApplicableLimits, now: number): ApplicableLimits {
  if (now < limits.monthEndsAt) return limits;
  const scopes = limits.scopes.map((scope) => ({ ...scope, ...noCosts }));
  return { scopes, month: toMonth(now), monthEndsAt: toMonthEnd(now) };
}

async function readCosts(
  db: Database,
  { accountId, otherServers, now }: ApplicableQuery,
  keyId: string | null,
): Promise<BudgetCosts> {
  const month = toMonth(now);
  if (otherServers === null) {
    const { costNano } = await readMonthlySpend(db, accountId, keyId, month);
    return { ...noCosts, spentNano: costNano };
  }
  const { processId, silentMs } = otherServers;
  const seenBefore = silentMs === null ? Number.MAX_SAFE_INTEGER : now - silentMs;
  return readBudgetCosts(db, { accountId, keyId, month }, { processId, seenBefore });
}

const noCosts: BudgetCosts = Object.freeze({ spentNano: 0, otherServersNano: 0 });

const limitColumns = [
  'requests_per_minute',
  'tokens_per_minute',
  'concurrent_requests',
  'monthly_budget_nano',
] as const;

export const readAccountLimits = (db: Database | Tx, accountId: string): Promise<LimitColumns> =>
  db
    .selectFrom('accounts')
    .select([...limitColumns])
    .where('id', '=', accountId)
    .executeTakeFirstOrThrow();

const findKeyLimits = (db: Database, keyId: string): Promise<LimitColumns | undefined> =>
  db
    .selectFrom('api_keys')
    .select([...limitColumns])
    .where('id', '=', keyId)
    .executeTakeFirst();
