// A small map that forgets: entries die after a time, and the least recently written go first when it
// is full.

import type { Clock } from '#lib/clock.ts';

export interface BoundedCache<Value> {
  get(key: string): Value | undefined;
  /** Taken before a value is looked up elsewhere, and given with it: what `clear` overtook is not kept. */
  ticket(): number;
  set(key: string, value: Value, ticket: number): void;
  clear(): void;
}

export function createBoundedCache<Value>(
  clock: Clock,
  options: { maxEntries: number; maxAgeMs: number },
): BoundedCache<Value> {
  const entries = new Map<string, { value: Value; bornAt: number }>();
  let generation = 0;
  return {
    ticket: () => generation,
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      const ageMs = clock.now() - entry.bornAt;
      // Below 0 the clock was set back: nobody knows how old it is.
      if (ageMs >= 0 && ageMs < options.maxAgeMs) return entry.value;
      entries.delete(key);
      return undefined;
    },
    set(key, value, ticket) {
      if (ticket !== generation) return;
      entries.delete(key);
      if (entries.size >= options.maxEntries) {
        const oldest = entries.keys().next().value;
        if (oldest !== undefined) entries.delete(oldest);
      }
      entries.set(key, { value, bornAt: clock.now() });
    },
    clear() {
      generation++;
      entries.clear();
    },
  };
}
