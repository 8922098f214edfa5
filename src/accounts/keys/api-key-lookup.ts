// Finds API keys by their secret. Every request does this, so found keys are cached for a second: that is how long
// a key revoked by another process may still work here. While the database is unavailable, keys that were found in
// the last minutes keep working.

import type { Role, Scope } from '#accounts/principal.ts';
import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { isDatabaseUnavailable } from '#lib/errors.ts';
import { createLookupCache } from '#lib/memory/caches.ts';
import { equalHashes, hashToken } from '#lib/secrets/secrets.ts';

export interface FoundApiKey {
  id: string;
  accountId: string;
  scopes: readonly Scope[];
  /** The present role of the person who created the key. */
  role: Role;
  expiresAt: number | null;
}

export interface ApiKeyLookup {
  /** Undefined for unknown, revoked and expired keys alike. */
  find(key: string): Promise<FoundApiKey | undefined>;
  /** Forgets a key after it was revoked; every key if there is no id. */
  forget(keyId?: string): void;
  /** Writes the time of last use of keys used since the last flush. */
  flushLastUsed(): Promise<void>;
}

/** Maximum keys whose last use is written in one transaction, which waits for the disk once. */
const flushRows = 100;

export interface ApiKeyOptions {
  /** How long a key may be used after it was last found, while the database is unavailable. Default: 0. */
  readonly outageMs?: number;
}

export function createApiKeyLookup(
  db: Database,
  clock: Clock,
  { outageMs = 0 }: ApiKeyOptions,
): ApiKeyLookup {
  /**
   * Keyed by the API key itself, because hashing it again on every request costs more than the rest of the lookup.
   */
  const cache = createLookupCache<FoundApiKey>(clock, {
    maxEntries: 10_000,
    maxAgeMs: 1000,
    maxStaleMs: Math.max(1000, outageMs),
  });
  const lastUsed = new Map<string, number>();

  const find: ApiKeyLookup['find'] = async (presented) =>
    toUsable(cache.get(presented) ?? (await load(presented)));

  /** Notes the use of a key. */
  function toUsable(key: FoundApiKey | undefined): FoundApiKey | undefined {
    const now = clock.now();
    if (key === undefined || (key.expiresAt !== null && key.expiresAt <= now)) return undefined;
    lastUsed.set(key.id, now);
    return key;
  }

  async function load(presented: string): Promise<FoundApiKey | undefined> {
    const ticket = cache.ticket();
    try {
      const key = await readKey(db, hashToken(presented));
      if (key === undefined) cache.delete(presented);
      else cache.set(presented, key, ticket);
      return key;
    } catch (error) {
      const known = isDatabaseUnavailable(error) ? cache.getStale(presented) : undefined;
      if (known === undefined) throw error;
      return known;
    }
  }

  const forget = (keyId?: string) => cache.clear(({ id }) => keyId === undefined || id === keyId);

  async function flushLastUsed(): Promise<void> {
    // Sorted by id: servers that write at the same time then wait for each other and can't deadlock.
    const used = [...lastUsed].sort(([a], [b]) => (a < b ? -1 : 1));
    for (let at = 0; at < used.length; at += flushRows) {
      const batch = used.slice(at, at + flushRows);
      await db.transaction().execute(async (tx) => {
        for (const [id, last_used_at] of batch) {
          await tx.updateTable('api_keys').set({ last_used_at }).where('id', '=', id).execute();
        }
      });
      for (const [id, usedAt] of batch) if (lastUsed.get(id) === usedAt) lastUsed.delete(id);
    }
  }

  return { find, forget, flushLastUsed };
}

async function readKey(db: Database, hash: string): Promise<FoundApiKey | undefined> {
  const row = await db
    .selectFrom('api_keys as k')
    .leftJoin('memberships as m', (join) =>
      join.onRef('m.user_id', '=', 'k.created_by').onRef('m.account_id', '=', 'k.account_id'),
    )
    .select(['k.id', 'k.account_id', 'k.hash', 'k.scopes', 'k.expires_at', 'm.role'])
    .where('k.hash', '=', hash)
    .where('k.revoked_at', 'is', null)
    .executeTakeFirst();
  if (row === undefined || !equalHashes(row.hash, hash)) return undefined;
  return {
    id: row.id,
    accountId: row.account_id,
    scopes: JSON.parse(row.scopes),
    // The server created the first key. In version 0.2, the keys of a removed person could be kept.
    role: (row.role ?? 'member') as Role,
    expiresAt: row.expires_at,
  };
}
