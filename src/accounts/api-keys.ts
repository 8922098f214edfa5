// API keys: made once, shown once, kept as a hash. Looking one up is on every request's path, so found
// keys are remembered for a second: that is how long a key revoked by another process may live on here.

import { changeLimits, toColumns, toLimitSet, toWireLimits } from '#accounts/limits/limit-set.ts';
import type { LimitSettings } from '#accounts/limits/settings.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { ApiKeyRow, Database, Tx } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { invalidBody, notFound } from '#lib/errors.ts';
import { newId, randomAlphanumerics } from '#lib/ids.ts';
import { createLookupCache } from '#lib/memory/lookup-cache.ts';
import { equalHashes, hashToken, maskSecret } from '#lib/secrets/secrets.ts';
import { type Actor, type Audit, system } from './audit.ts';
import { type Principal, type Scope, scopes } from './principal.ts';
import type { Limits } from './schema.ts';

export interface NewApiKey {
  label: string;
  scopes: readonly Scope[];
  expiresAt: number | null;
  /** What is left out is as the configuration says for new keys. */
  limits?: Limits;
}

export interface ApiKeyChange {
  label?: string;
  limits?: Limits;
}

export interface FoundApiKey {
  id: string;
  accountId: string;
  scopes: readonly Scope[];
  expiresAt: number | null;
}

export interface ApiKeys {
  /** The key itself is in the answer and nowhere else. */
  create(
    accountId: string,
    input: NewApiKey,
    actor: Actor,
  ): Promise<{ row: ApiKeyRow; key: string }>;
  /** The first key of an account that never had one; null when it had. */
  createFirst(accountId: string): Promise<string | null>;
  /** Stores a key the operator chose, unless it is there already. */
  preset(accountId: string, key: string): Promise<void>;
  list(accountId: string): Promise<ApiKeyRow[]>;
  /** Limits hold at once here, and within a second in other processes. */
  update(principal: Principal, id: string, change: ApiKeyChange): Promise<ApiKeyRow>;
  revoke(principal: Principal, id: string): Promise<void>;
  /** Undefined for unknown, revoked and expired keys alike. */
  find(key: string): Promise<FoundApiKey | undefined> | FoundApiKey | undefined;
  /** Writes down when keys were last used; called every few seconds and at the end. */
  flushLastUsed(): Promise<void>;
}

const maxKeysPerAccount = 10_000;
/** Keys whose last use is written in one transaction, which waits for the disk once. */
const flushedAtOnce = 100;

export function createApiKeys(
  db: Database,
  clock: Clock,
  audit: Audit,
  limitSettings: LimitSettings,
): ApiKeys {
  const found = createLookupCache<FoundApiKey>(clock, { maxEntries: 10_000, maxAgeMs: 1000 });
  const lastUsed = new Map<string, number>();

  async function create(accountId: string, input: NewApiKey, actor: Actor) {
    return db.transaction().execute((tx) => insert(tx, accountId, input, actor));
  }

  async function insert(tx: Tx, accountId: string, input: NewApiKey, actor: Actor) {
    checkExpiry(input.expiresAt);
    const key = `secret_${toKeyLabel(input.label)}_${newId()}.${randomAlphanumerics(32)}`;
    const row = toRow(accountId, input, key, actor.kind === 'session' ? actor.userId : null);
    await lockAccount(tx, accountId);
    if ((await countKeys(tx, accountId)) >= maxKeysPerAccount) {
      throw invalidBody(`The account has ${maxKeysPerAccount} keys. Revoke some first.`);
    }
    await tx.insertInto('api_keys').values(row).execute();
    await audit.record(tx, { ...actor, accountId }, toEntry('api_key.created', row));
    return { row, key };
  }

  function checkExpiry(at: number | null): void {
    if (at === null || at > clock.now()) return;
    // Not a number either: a leap second is a time to the schema and none to JavaScript.
    const what = Number.isNaN(at) ? 'is not a time that can be used' : 'is in the past';
    throw invalidBody(`expires_at ${what}.`, 'expires_at');
  }

  async function countKeys(tx: Tx, accountId: string): Promise<number> {
    const { count } = await tx
      .selectFrom('api_keys')
      .select((row) => row.fn.countAll<number>().as('count'))
      .where('account_id', '=', accountId)
      .where('revoked_at', 'is', null)
      .executeTakeFirstOrThrow();
    return count;
  }

  async function createFirst(accountId: string) {
    return db.transaction().execute(async (tx) => {
      await lockAccount(tx, accountId);
      const key = await tx
        .selectFrom('api_keys')
        .select('id')
        .where('account_id', '=', accountId)
        .executeTakeFirst();
      if (key !== undefined) return null;
      const input: NewApiKey = { label: 'first', scopes, expiresAt: null };
      return (await insert(tx, accountId, input, system)).key;
    });
  }

  async function preset(accountId: string, key: string) {
    const row = toRow(accountId, { label: 'preset', scopes, expiresAt: null }, key, null);
    return db.transaction().execute(async (tx) => {
      const { numInsertedOrUpdatedRows } = await tx
        .insertInto('api_keys')
        .values(row)
        .onConflict((conflict) => conflict.column('hash').doNothing())
        .executeTakeFirst();
      if (numInsertedOrUpdatedRows === 0n) return;
      await audit.record(tx, { ...system, accountId }, toEntry('api_key.created', row));
    });
  }

  function toRow(accountId: string, input: NewApiKey, key: string, userId: string | null) {
    return {
      id: newId(),
      account_id: accountId,
      label: input.label,
      hash: hashToken(key),
      hint: maskSecret(key),
      scopes: JSON.stringify(input.scopes),
      created_by: userId,
      created_at: clock.now(),
      expires_at: input.expiresAt,
      revoked_at: null,
      last_used_at: null,
      ...toColumns(changeLimits(limitSettings.keyDefaults, input.limits ?? {})),
    };
  }

  function list(accountId: string) {
    return db
      .selectFrom('api_keys')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('revoked_at', 'is', null)
      .orderBy('created_at')
      .orderBy('id')
      .execute();
  }

  async function update(principal: Principal, id: string, { label, limits }: ApiKeyChange) {
    const after = await db.transaction().execute(async (tx) => {
      await lockAccount(tx, principal.accountId);
      const before = await tx
        .selectFrom('api_keys')
        .selectAll()
        .where('id', '=', id)
        .where('account_id', '=', principal.accountId)
        .where('revoked_at', 'is', null)
        .executeTakeFirst();
      if (before === undefined) throw notFound('This API key');
      const changed = {
        label: label ?? before.label,
        ...toColumns(changeLimits(toLimitSet(before), limits ?? {})),
      };
      await tx.updateTable('api_keys').set(changed).where('id', '=', id).execute();
      const row = { ...before, ...changed };
      const show = (one: ApiKeyRow) => ({ label: one.label, limits: toWireLimits(one) });
      await audit.record(tx, principal, {
        action: 'api_key.updated',
        resourceId: id,
        details: { from: show(before), to: show(row) },
      });
      return row;
    });
    limitSettings.forget();
    return after;
  }

  async function revoke(principal: Principal, id: string) {
    await db.transaction().execute(async (tx) => {
      const row = await tx
        .updateTable('api_keys')
        .set({ revoked_at: clock.now() })
        .where('id', '=', id)
        .where('account_id', '=', principal.accountId)
        .where('revoked_at', 'is', null)
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) throw notFound('This API key');
      await audit.record(tx, principal, toEntry('api_key.revoked', row));
    });
    found.clear();
  }

  /** Remembered by the key itself: hashing it anew for every request would be most of the work. */
  function find(key: string): Promise<FoundApiKey | undefined> | FoundApiKey | undefined {
    const known = found.get(key);
    return known === undefined ? look(key) : markUsed(known);
  }

  async function look(presented: string): Promise<FoundApiKey | undefined> {
    const hash = hashToken(presented);
    const ticket = found.ticket();
    const row = await db
      .selectFrom('api_keys')
      .selectAll()
      .where('hash', '=', hash)
      .where('revoked_at', 'is', null)
      .executeTakeFirst();
    if (row === undefined || !equalHashes(row.hash, hash)) return undefined;
    const key: FoundApiKey = {
      id: row.id,
      accountId: row.account_id,
      scopes: JSON.parse(row.scopes),
      expiresAt: row.expires_at,
    };
    found.set(presented, key, ticket);
    return markUsed(key);
  }

  function markUsed(key: FoundApiKey): FoundApiKey | undefined {
    const now = clock.now();
    if (key.expiresAt !== null && key.expiresAt <= now) return undefined;
    lastUsed.set(key.id, now);
    return key;
  }

  async function flushLastUsed() {
    // In the order of their ids: servers that write at once then wait for each other, and never in a circle.
    const used = [...lastUsed].sort(([a], [b]) => (a < b ? -1 : 1));
    for (let at = 0; at < used.length; at += flushedAtOnce) {
      const some = used.slice(at, at + flushedAtOnce);
      await db.transaction().execute(async (tx) => {
        for (const [id, last_used_at] of some) {
          await tx.updateTable('api_keys').set({ last_used_at }).where('id', '=', id).execute();
        }
      });
      for (const [id, usedAt] of some) if (lastUsed.get(id) === usedAt) lastUsed.delete(id);
    }
  }

  return { create, createFirst, preset, list, update, revoke, find, flushLastUsed };
}

/** The label as part of a key: what a shell, a header and a double click all take as one word. */
function toKeyLabel(label: string): string {
  const word = label
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return word.slice(0, 32).replace(/-$/, '') || 'key';
}

function toEntry(action: 'api_key.created' | 'api_key.revoked', row: ApiKeyRow) {
  return {
    action,
    resourceId: row.id,
    details: { label: row.label, scopes: JSON.parse(row.scopes), limits: toWireLimits(row) },
  };
}
