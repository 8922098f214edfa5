// Bounded caches, which evict what was least recently used: of lookups in the database, and of what
// a function computes.

import { LRUCache } from 'lru-cache';
import type { Clock } from '#lib/clock.ts';

/**
 * A cache for lookups in the database: entries expire, and a lookup that began before `clear` is not stored, so that a
 * revoked key can't come back from a stale read.
 */
export interface LookupCache<Value> {
  get(key: string): Value | undefined;
  /** Returns an entry up to `maxStaleMs` old, for when the database can't be asked. */
  getStale(key: string): Value | undefined;
  /** Take a ticket before looking a value up, and pass it to `set`. `clear` makes earlier tickets void. */
  ticket(): number;
  set(key: string, value: Value, ticket: number): void;
  delete(key: string): void;
  /** Makes `get` forget every entry. Those for which `isGone` returns true, by default all, are deleted. */
  clear(isGone?: (value: Value) => boolean): void;
}

export interface LookupCacheOptions {
  readonly maxEntries: number;
  readonly maxAgeMs: number;
  /** At least `maxAgeMs`, which is the default. */
  readonly maxStaleMs?: number;
}

interface Entry<Value> {
  readonly value: Value;
  readonly storedAt: number;
  readonly generation: number;
}

export function createLookupCache<Value>(
  clock: Clock,
  { maxEntries, maxAgeMs, maxStaleMs = maxAgeMs }: LookupCacheOptions,
): LookupCache<Value> {
  const entries = new LRUCache<string, Entry<Value>>({ max: maxEntries });
  let generation = 0;

  function find(key: string, limitMs: number): Entry<Value> | undefined {
    const entry = entries.get(key);
    if (entry === undefined) return undefined;
    const ageMs = clock.now() - entry.storedAt;
    // A negative age means that the clock was set back, so that the real age is unknown.
    if (ageMs < 0 || ageMs >= maxStaleMs) entries.delete(key);
    return ageMs >= 0 && ageMs < limitMs ? entry : undefined;
  }

  return {
    ticket: () => generation,
    get(key) {
      const entry = find(key, maxAgeMs);
      return entry?.generation === generation ? entry.value : undefined;
    },
    getStale: (key) => find(key, maxStaleMs)?.value,
    set(key, value, ticket) {
      if (ticket === generation) entries.set(key, { value, storedAt: clock.now(), generation });
    },
    delete: (key) => entries.delete(key),
    clear(isGone = () => true) {
      generation++;
      for (const [key, { value }] of entries.entries()) if (isGone(value)) entries.delete(key);
    },
  };
}

const maxMemoized = 1000;

/** Memoizes a function by a name computed from its argument. Names may come from outside, so the memory is bounded. */
export function memoize<Argument, Result extends object>(
  nameOf: (argument: Argument) => string,
  compute: (argument: Argument) => Result,
): (argument: Argument) => Result {
  const known = new LRUCache<string, Result>({ max: maxMemoized });
  return (argument) => {
    const name = nameOf(argument);
    const found = known.get(name);
    if (found !== undefined) return found;
    const result = compute(argument);
    known.set(name, result);
    return result;
  };
}
