// A cache for lookups in the database: entries expire, the least recently used are evicted, and a lookup that
// began before `clear` is not stored, so that a revoked key can't come back from a stale read.

import { LRUCache } from 'lru-cache';
import type { Clock } from '#lib/clock.ts';

export interface LookupCache<Value> {
  get(key: string): Value | undefined;
  /** Take a ticket before looking a value up, and pass it to `set`. `clear` makes earlier tickets void. */
  ticket(): number;
  set(key: string, value: Value, ticket: number): void;
  clear(): void;
}

export function createLookupCache<Value>(
  clock: Clock,
  options: { maxEntries: number; maxAgeMs: number },
): LookupCache<Value> {
  const entries = new LRUCache<string, { value: Value; storedAt: number }>({
    max: options.maxEntries,
  });
  let generation = 0;
  return {
    ticket: () => generation,
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      const ageMs = clock.now() - entry.storedAt;
      // A negative age means that the clock was set back, so that the real age is unknown.
      if (ageMs >= 0 && ageMs < options.maxAgeMs) return entry.value;
      entries.delete(key);
      return undefined;
    },
    set(key, value, ticket) {
      if (ticket === generation) entries.set(key, { value, storedAt: clock.now() });
    },
    clear() {
      generation++;
      entries.clear();
    },
  };
}
