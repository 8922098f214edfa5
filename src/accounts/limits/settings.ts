// The limits of keys and accounts as they are set. They are read on every request, so each read is cached for a
// second: that is how much later a limit changed by another process applies here. While the database is unavailable,
// limits that were read in the last minutes apply.

import type { Audit } from '#accounts/audit/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import type { Limits as WireLimits } from '#accounts/schema.ts';
import {
  type BudgetCosts,
  readBudgetCosts,
  readMonthlySpend,
} from '#accounts/usage/monthly-spend.ts';
import { toMonth, toMonthEnd } from '#accounts/usage/periods.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { LimitColumns } from '#db/tables/account-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { isDatabaseUnavailable } from '#lib/errors.ts';
import { createLookupCache } from '#lib/memory/caches.ts';
import {
  changeLimits,
  hasLimit,
  type LimitSet,
  toColumns,
  toLimitSet,
  toWireLimits,
} from './limit-set.ts';
import type { LimitScope } from './store.ts';

export interface LimitSettings {
  /** Limits of a new key, where its creator names none. */
  readonly keyDefaults: LimitSet;
  /** Applies a reloaded configuration to new keys. Existing keys keep their limits. */
  configure(next: LimitDefaults): void;
  /** The limits of a request by this key, or by a signed-in user if the key is null. */
  find(accountId: string, keyId: string | null): Promise<ApplicableLimits>;
  getAccount(accountId: string): Promise<LimitColumns>;
  changeAccount(principal: SessionPrincipal, wire: WireLimits): Promise<LimitColumns>;
  /** Clears the cache after a change. */
  forget(): void;
}

export interface LimitDefaults {
  keyDefaults: LimitSet;
}

export interface LimitOptions extends LimitDefaults {
  /** Null if no other server uses the database. */
  otherServers: OtherServers | null;
  /** How long limits apply after they were last read, while the database is unavailable. Default: 0. */
  outageMs?: number;
}

export function createLimitSettings(
  db: Database,
  clock: Clock,
  audit: Audit,
  { otherServers, outageMs = 0, ...defaults }: LimitOptions,
): LimitSettings {
  let { keyDefaults } = defaults;
  const cache = createLookupCache<ApplicableLimits>(clock, {
    maxEntries: 10_000,
    maxAgeMs: 1000,
    maxStaleMs: Math.max(1000, outageMs),
  });
  /** Reads in progress, shared by concurrent callers. */
  const reads = new Map<string, Promise<ApplicableLimits>>();

  async function find(accountId: string, keyId: string | null): Promise<ApplicableLimits> {
    const id = keyId ?? accountId;
    const known = cache.get(id);
    if (known !== undefined && clock.now() < known.monthEndsAt) return known;
    const current = reads.get(id);
    if (current !== undefined) return current;
    const started = read(id, accountId, keyId).finally(() => {
      if (reads.get(id) === started) reads.delete(id);
    });
    reads.set(id, started);
    return started;
  }

  async function read(id: string, accountId: string, keyId: string | null) {
    const ticket = cache.ticket();
    const query = { accountId, keyId, otherServers, now: clock.now() };
    try {
      const found = await readApplicableLimits(db, query);
      cache.set(id, found, ticket);
      return found;
    } catch (error) {
      const known = isDatabaseUnavailable(error) ? cache.getStale(id) : undefined;
      if (known === undefined) throw error;
      return inMonthOf(known, query.now);
    }
  }

  function forget(): void {
    // An outage may follow before the changed limits are read: the old ones then apply, rather than none.
    cache.clear(() => false);
    reads.clear();
  }

  return {
    get keyDefaults() {
      return keyDefaults;
    },
    configure(next) {
      ({ keyDefaults } = next);
    },
    find,
    getAccount: (accountId) => readAccountLimits(db, accountId),
    async changeAccount(principal, wire) {
      const columns = await changeAccountLimits(db, audit, principal, wire);
      forget();
      return columns;
    },
    forget,
  };
}

function changeAccountLimits(
  db: Database,
  audit: Audit,
  principal: SessionPrincipal,
  wire: WireLimits,
): Promise<LimitColumns> {
  const { accountId } = principal;
  return db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const before = await readAccountLimits(tx, accountId);
    const columns = toColumns(changeLimits(toLimitSet(before), wire));
    await tx.updateTable('accounts').set(columns).where('id', '=', accountId).execute();
    await audit.record(tx, principal, {
      action: 'account.limits_changed',
      resourceId: accountId,
      details: { from: toWireLimits(before), to: toWireLimits(columns) },
    });
    return columns;
  });
}

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

interface ApplicableQuery {
  accountId: string;
  /** Null for a signed-in user. */
  keyId: string | null;
  /** Null if no other server uses the database. */
  otherServers: OtherServers | null;
  now: number;
}

/** Reads which limits apply to a request, and what the month has cost so far. */
async function readApplicableLimits(
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
function inMonthOf(limits: ApplicableLimits, now: number): ApplicableLimits {
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

const readAccountLimits = (db: Database | Tx, accountId: string): Promise<LimitColumns> =>
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
