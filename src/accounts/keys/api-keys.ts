// API keys: created once, shown once, stored as a hash. Limits and revocations apply at once in this process, and
// within a second in others.

import { type Actor, type Audit, system } from '#accounts/audit/audit.ts';
import { changeLimits, toColumns, toLimitSet, toWireLimits } from '#accounts/limits/limit-set.ts';
import type { LimitSettings } from '#accounts/limits/settings.ts';
import type { Page } from '#accounts/paging.ts';
import { requireCurrentRole } from '#accounts/people/current-role.ts';
import { type Scope, type SessionPrincipal, scopes } from '#accounts/principal.ts';
import type { Limits } from '#accounts/schema.ts';
import { countRows } from '#db/count-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { ApiKeyRow } from '#db/tables/account-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { forbidden, invalidBody, notFound } from '#lib/errors.ts';
import { newId, randomAlphanumerics } from '#lib/ids.ts';
import { hashToken, maskSecret } from '#lib/secrets/secrets.ts';
import {
  type ApiKeyFilter,
  findListedApiKey,
  type ListedApiKey,
  listApiKeys,
} from './api-key-list.ts';
import { type ApiKeyLookup, type ApiKeyOptions, createApiKeyLookup } from './api-key-lookup.ts';

export interface NewApiKey {
  label: string;
  scopes: readonly Scope[];
  expiresAt: number | null;
  /** Limits that are left out get the configured defaults for new keys. */
  limits?: Limits;
}

export interface ApiKeyChange {
  label?: string;
  limits?: Limits;
}

export interface ApiKeys extends Pick<ApiKeyLookup, 'find' | 'forget' | 'flushLastUsed'> {
  /** The returned key is not stored anywhere. */
  create(accountId: string, input: NewApiKey, actor: Actor): Promise<CreatedApiKey>;
  /** Creates the first key of an account; null if the account ever had one. */
  createFirst(accountId: string): Promise<string | null>;
  /** Stores a key that the operator chose, unless it is stored already. */
  preset(accountId: string, key: string): Promise<void>;
  list(accountId: string, filter: ApiKeyFilter): Promise<Page<ListedApiKey>>;
  /** Throws not-found for a revoked key as well. */
  get(accountId: string, id: string): Promise<ListedApiKey>;
  /** A member may change and revoke only keys that the member created. */
  update(principal: SessionPrincipal, id: string, change: ApiKeyChange): Promise<ListedApiKey>;
  /** Ends the key's running requests too, unless they may finish. */
  revoke(principal: SessionPrincipal, id: string, options?: RevocationOptions): Promise<void>;
  /** Revokes every key that the user created, and returns their number. Call `forget` after the commit. */
  revokeAllOf(tx: Tx, principal: SessionPrincipal, userId: string): Promise<number>;
}

export interface RevocationOptions {
  readonly letsFinish?: boolean;
}

export interface CreatedApiKey {
  row: ApiKeyRow;
  key: string;
}

interface Context {
  readonly db: Database;
  readonly clock: Clock;
  readonly audit: Audit;
  readonly limitSettings: LimitSettings;
}

const maxKeysPerAccount = 10_000;

export function createApiKeys(
  db: Database,
  clock: Clock,
  audit: Audit,
  {
    limitSettings,
    onRevoked = () => {},
    ...options
  }: ApiKeyOptions & { limitSettings: LimitSettings; onRevoked?: () => void },
): ApiKeys {
  const context: Context = { db, clock, audit, limitSettings };
  const lookup = createApiKeyLookup(db, clock, options);
  return {
    create: (accountId, input, actor) =>
      db.transaction().execute((tx) => insertKey(context, tx, { ...actor, accountId }, input)),
    createFirst: (accountId) => createFirstKey(context, accountId),
    preset: (accountId, key) => presetKey(context, accountId, key),
    list: (accountId, filter) => listApiKeys(db, accountId, filter),
    get: (accountId, id) => getKey(db, accountId, id),
    async update(principal, id, change) {
      const row = await updateKey(context, principal, id, change);
      limitSettings.forget();
      return row;
    },
    async revoke(principal, id, revocation = {}) {
      await revokeKey(context, principal, id, revocation);
      lookup.forget(id);
      onRevoked();
    },
    revokeAllOf: (tx, principal, userId) => revokeAllOf(context, tx, principal, userId),
    find: lookup.find,
    forget: lookup.forget,
    flushLastUsed: lookup.flushLastUsed,
  };
}

async function insertKey(
  { clock, audit, limitSettings }: Context,
  tx: Tx,
  actor: Actor & { accountId: string },
  input: NewApiKey,
): Promise<CreatedApiKey> {
  checkExpiry(input.expiresAt, clock.now());
  const key = `secret_${toKeyLabel(input.label)}_${newId()}.${randomAlphanumerics(32)}`;
  const row: ApiKeyRow = {
    ...toRow(actor.accountId, input, key, limitSettings),
    created_at: clock.now(),
    created_by: actor.kind === 'session' ? actor.userId : null,
  };
  await lockAccount(tx, actor.accountId);
  if (actor.kind === 'session') await requireCurrentRole(tx, actor, 'owner', 'member');
  if ((await countKeys(tx, actor.accountId)) >= maxKeysPerAccount) {
    throw invalidBody(`The account has ${maxKeysPerAccount} keys. Revoke some first.`);
  }
  await tx.insertInto('api_keys').values(row).execute();
  await audit.record(tx, actor, toEntry('api_key.created', row));
  return { row, key };
}

function checkExpiry(at: number | null, now: number): void {
  if (at === null || at > now) return;
  // The schema accepts a leap second, which Date.parse turns into NaN.
  const problem = Number.isNaN(at) ? 'is not a time that can be used' : 'is in the past';
  throw invalidBody(`expires_at ${problem}.`, 'expires_at');
}

const countKeys = (tx: Tx, accountId: string) =>
  countRows(
    tx.selectFrom('api_keys').where('account_id', '=', accountId).where('revoked_at', 'is', null),
  );

function createFirstKey(context: Context, accountId: string): Promise<string | null> {
  return context.db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const existing = await tx
      .selectFrom('api_keys')
      .select('id')
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    if (existing !== undefined) return null;
    const input: NewApiKey = { label: 'first', scopes, expiresAt: null };
    const { key } = await insertKey(context, tx, { ...system, accountId }, input);
    return key;
  });
}

function presetKey(context: Context, accountId: string, key: string): Promise<void> {
  const { db, clock, audit, limitSettings } = context;
  const row: ApiKeyRow = {
    ...toRow(accountId, { label: 'preset', scopes, expiresAt: null }, key, limitSettings),
    created_at: clock.now(),
    created_by: null,
  };
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

const toRow = (
  accountId: string,
  input: NewApiKey,
  key: string,
  { keyDefaults }: LimitSettings,
): Omit<ApiKeyRow, 'created_at' | 'created_by'> => ({
  id: newId(),
  account_id: accountId,
  label: input.label,
  hash: hashToken(key),
  hint: maskSecret(key),
  scopes: JSON.stringify(input.scopes),
  expires_at: input.expiresAt,
  revoked_at: null,
  lets_finish: 0,
  last_used_at: null,
  ...toColumns(changeLimits(keyDefaults, input.limits ?? {})),
});

function updateKey(
  { db, audit }: Context,
  principal: SessionPrincipal,
  id: string,
  { label, limits }: ApiKeyChange,
): Promise<ListedApiKey> {
  return db.transaction().execute(async (tx) => {
    await lockAccount(tx, principal.accountId);
    const before = await getChangeable(tx, principal, id);
    const changed = {
      label: label ?? before.label,
      ...toColumns(changeLimits(toLimitSet(before), limits ?? {})),
    };
    await tx.updateTable('api_keys').set(changed).where('id', '=', id).execute();
    const after = { ...before, ...changed };
    const toDetails = (row: ApiKeyRow) => ({ label: row.label, limits: toWireLimits(row) });
    await audit.record(tx, principal, {
      action: 'api_key.updated',
      resourceId: id,
      details: { from: toDetails(before), to: toDetails(after) },
    });
    return after;
  });
}

async function getKey(db: Database | Tx, accountId: string, id: string): Promise<ListedApiKey> {
  const row = await findListedApiKey(db, accountId, id);
  if (row === undefined) throw notFound('This API key');
  return row;
}

async function getChangeable(
  tx: Tx,
  { accountId, role, userId }: SessionPrincipal,
  id: string,
): Promise<ListedApiKey> {
  const row = await getKey(tx, accountId, id);
  if (role !== 'owner' && row.created_by !== userId) {
    throw forbidden('Members change only API keys that they created. Ask an owner.');
  }
  return row;
}

async function revokeKey(
  { db, clock, audit }: Context,
  principal: SessionPrincipal,
  id: string,
  { letsFinish = false }: RevocationOptions,
): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await lockAccount(tx, principal.accountId);
    const row = await getChangeable(tx, principal, id);
    const revoked = { revoked_at: clock.now(), lets_finish: Number(letsFinish) };
    await tx.updateTable('api_keys').set(revoked).where('id', '=', id).execute();
    await audit.record(tx, principal, toEntry('api_key.revoked', row));
  });
}

async function revokeAllOf(
  { clock, audit }: Context,
  tx: Tx,
  principal: SessionPrincipal,
  userId: string,
): Promise<number> {
  const rows = await tx
    .updateTable('api_keys')
    .set({ revoked_at: clock.now() })
    .where('account_id', '=', principal.accountId)
    .where('created_by', '=', userId)
    .where('revoked_at', 'is', null)
    .returningAll()
    .execute();
  for (const row of rows) await audit.record(tx, principal, toEntry('api_key.revoked', row));
  return rows.length;
}

/** Converts a label to a part of a key that is one word to a shell, in a header and to a double click. */
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
