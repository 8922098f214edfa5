// Which limits hold for whom, and what the month has cost so far. Asked on every request, so answers are
// remembered for a second: a limit changed by another process holds here that much later.

import type { Audit } from '#accounts/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import type { Limits as WireLimits } from '#accounts/schema.ts';
import { type Costs, readCosts } from '#accounts/usage/costs.ts';
import { readSpend, toMonth, toMonthEnd } from '#accounts/usage/spend.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { Database, LimitColumns, Tx } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { createLookupCache } from '#lib/memory/lookup-cache.ts';
import {
  changeLimits,
  hasLimit,
  type LimitSet,
  toColumns,
  toLimitSet,
  toWireLimits,
} from './limit-set.ts';
import type { LimitScope } from './store.ts';

export interface Governed {
  /** Those of the key and the account that have a limit. */
  readonly scopes: readonly LimitScope[];
  readonly month: string;
}

export interface LimitSettings {
  /** What a key gets when nothing else was said. */
  readonly keyDefaults: LimitSet;
  /** The configuration was read again. What exists stays as it is. */
  configure(next: LimitDefaults): void;
  find(accountId: string, keyId: string | null): Governed | Promise<Governed>;
  getAccount(accountId: string): Promise<LimitColumns>;
  changeAccount(principal: SessionPrincipal, wire: WireLimits): Promise<LimitColumns>;
  /** Something was changed: look again. */
  forget(): void;
}

export interface LimitDefaults {
  keyDefaults: LimitSet;
}

export interface LimitOptions extends LimitDefaults {
  /** Null where no other server uses the database. */
  others: Others | null;
}

export interface Others {
  /** Of this server, as its requests' rows have it. */
  processId: string;
  /** What servers run that were seen since is held in the shared store. Null where nothing is shared. */
  silentMs: number | null;
}

interface Remembered extends Governed {
  readonly monthEndsAt: number;
}

export function createLimitSettings(
  db: Database,
  clock: Clock,
  audit: Audit,
  { others, ...defaults }: LimitOptions,
): LimitSettings {
  let { keyDefaults } = defaults;
  const cache = createLookupCache<Remembered>(clock, { maxEntries: 10_000, maxAgeMs: 1000 });
  /** Callers who ask at once share one look. */
  const looking = new Map<string, Promise<Governed>>();

  function find(accountId: string, keyId: string | null): Governed | Promise<Governed> {
    const id = keyId ?? accountId;
    const known = cache.get(id);
    if (known !== undefined && clock.now() < known.monthEndsAt) return known;
    const begun = looking.get(id);
    if (begun !== undefined) return begun;
    const look = load(id, accountId, keyId).finally(() => {
      if (looking.get(id) === look) looking.delete(id);
    });
    looking.set(id, look);
    return look;
  }

  async function load(id: string, accountId: string, keyId: string | null): Promise<Governed> {
    const ticket = cache.ticket();
    const now = clock.now();
    const month = toMonth(now);
    const account = await getAccount(accountId);
    const key = keyId === null ? undefined : await findKey(keyId);
    const scopes: LimitScope[] = [];
    if (key !== undefined) await add('key', key, keyId);
    await add('account', account, null);
    const found = { scopes, month, monthEndsAt: toMonthEnd(now) };
    cache.set(id, found, ticket);
    return found;

    async function add(kind: LimitScope['kind'], row: LimitColumns, scopeKey: string | null) {
      const limits = toLimitSet(row);
      if (!hasLimit(limits)) return;
      const costs = limits.monthlyBudgetNano === null ? nothing : await look(scopeKey);
      scopes.push({ kind, id: scopeKey ?? accountId, accountId, limits, ...costs });
    }

    async function look(scopeKey: string | null): Promise<Costs> {
      if (others === null) {
        const { costNano } = await readSpend(db, accountId, scopeKey, month);
        return { ...nothing, spentNano: costNano };
      }
      const { processId, silentMs } = others;
      const seenBefore = silentMs === null ? Number.MAX_SAFE_INTEGER : now - silentMs;
      const payer = { accountId, keyId: scopeKey, month };
      return readCosts(db, payer, { processId, seenBefore });
    }
  }

  const getAccount = (accountId: string) => selectAccount(db, accountId);

  const selectAccount = (from: Database | Tx, accountId: string) =>
    from
      .selectFrom('accounts')
      .select([...limitColumns])
      .where('id', '=', accountId)
      .executeTakeFirstOrThrow();

  const findKey = (keyId: string) =>
    db
      .selectFrom('api_keys')
      .select([...limitColumns])
      .where('id', '=', keyId)
      .executeTakeFirst();

  async function changeAccount(principal: SessionPrincipal, wire: WireLimits) {
    const { accountId } = principal;
    const after = await db.transaction().execute(async (tx) => {
      await lockAccount(tx, accountId);
      const before = await selectAccount(tx, accountId);
      const columns = toColumns(changeLimits(toLimitSet(before), wire));
      await tx.updateTable('accounts').set(columns).where('id', '=', accountId).execute();
      await audit.record(tx, principal, {
        action: 'account.limits_changed',
        resourceId: accountId,
        details: { from: toWireLimits(before), to: toWireLimits(columns) },
      });
      return columns;
    });
    forget();
    return after;
  }

  function forget(): void {
    cache.clear();
    looking.clear();
  }

  return {
    get keyDefaults() {
      return keyDefaults;
    },
    configure(next) {
      ({ keyDefaults } = next);
    },
    find,
    getAccount,
    changeAccount,
    forget,
  };
}

const nothing: Costs = Object.freeze({ spentNano: 0, elsewhereNano: 0 });

const limitColumns = [
  'requests_per_minute',
  'tokens_per_minute',
  'concurrent_requests',
  'monthly_budget_nano',
] as const;
