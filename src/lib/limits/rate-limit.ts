// A rate limiter by GCRA: one timestamp per key, exact at any rate. This one is in memory and serves a single
// process; shared-rate-limit.ts serves several.

import type { Clock } from '#lib/clock.ts';

export interface Rate {
  /** Milliseconds until one unit is available again. */
  readonly intervalMs: number;
  /** Units that may be taken at once. */
  readonly burst: number;
}

export interface RateLimiter {
  /** Takes one unit. Returns 0 if it was granted, else the milliseconds until one is available. */
  take(key: string, rate: Rate): number | Promise<number>;
}

/** A limiter in this process, which answers synchronously. */
export interface LocalRateLimiter extends RateLimiter {
  take(key: string, rate: Rate): number;
}

export function createRateLimiter(clock: Clock, maxKeys = 100_000): LocalRateLimiter {
  /** When each key has its full burst again. Insertion order is age, by which the map is bounded. */
  const fullAt = new Map<string, number>();

  function take(key: string, { intervalMs, burst }: Rate): number {
    const now = clock.now();
    const known = fullAt.get(key) ?? 0;
    // A timestamp further ahead than a whole burst means that the clock was set back.
    const start = Math.min(Math.max(known, now), now + burst * intervalMs);
    if (known > start) fullAt.set(key, start);
    const waitMs = start + intervalMs - burst * intervalMs - now;
    if (waitMs > 0) return Math.ceil(waitMs);
    fullAt.delete(key);
    if (fullAt.size >= maxKeys) evictOldest();
    fullAt.set(key, start + intervalMs);
    return 0;
  }

  function evictOldest(): void {
    const oldest = fullAt.keys().next().value;
    if (oldest !== undefined) fullAt.delete(oldest);
  }

  return { take };
}
