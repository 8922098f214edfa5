// A limit of so many per interval, as GCRA: one timestamp per key, exact at any rate. This one lives in
// memory and serves a single process; shared-rate-limit.ts serves several.

import type { Clock } from '#lib/clock.ts';

export interface Rate {
  /** Milliseconds one unit takes to come back. */
  readonly intervalMs: number;
  /** How many may be taken at once. */
  readonly burst: number;
}

export interface RateLimiter {
  /** Takes one unit: 0 when it was granted, else the milliseconds until one will be there. */
  take(key: string, rate: Rate): number | Promise<number>;
}

/** Has nobody to wait for. */
export interface LocalRateLimiter extends RateLimiter {
  take(key: string, rate: Rate): number;
}

export function createRateLimiter(clock: Clock, maxKeys = 100_000): LocalRateLimiter {
  /** When each key will be back at its full burst. Insertion order is age, which bounds the map. */
  const fullAt = new Map<string, number>();

  function take(key: string, { intervalMs, burst }: Rate): number {
    const now = clock.now();
    const known = fullAt.get(key) ?? 0;
    // It is further ahead than a whole burst only where the clock was set back.
    const start = Math.min(Math.max(known, now), now + burst * intervalMs);
    if (known > start) fullAt.set(key, start);
    const waitMs = start + intervalMs - burst * intervalMs - now;
    if (waitMs > 0) return Math.ceil(waitMs);
    fullAt.delete(key);
    if (fullAt.size >= maxKeys) forgetOldest();
    fullAt.set(key, start + intervalMs);
    return 0;
  }

  function forgetOldest(): void {
    const oldest = fullAt.keys().next().value;
    if (oldest !== undefined) fullAt.delete(oldest);
  }

  return { take };
}
