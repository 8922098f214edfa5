// A rate limiter with a leaky bucket per key, exact at any rate. This one is in memory and serves a single
// process; shared-rate-limit.ts serves several.

import { LRUCache } from 'lru-cache';
import type { Clock } from '#lib/clock.ts';
import { type LeakyBucket, leak, newBucket, waitFor } from './leaky-bucket.ts';

export interface Rate {
  /** Milliseconds until one unit is available again. */
  readonly intervalMs: number;
  /** Units that may be taken at once. A fraction above 1 lets a unit be taken by so much of the interval too early. */
  readonly burst: number;
}

export interface RateLimiter {
  /** Takes one unit. Returns 0 if it was granted, else the milliseconds until one is available. */
  take(key: string, rate: Rate): number | Promise<number>;
  /** Returns a unit that was taken for nothing. */
  giveBack(key: string, rate: Rate): void | Promise<void>;
}

/** A limiter in this process, which answers synchronously. */
export interface LocalRateLimiter extends RateLimiter {
  take(key: string, rate: Rate): number;
  giveBack(key: string, rate: Rate): void;
}

export function createRateLimiter(clock: Clock, maxKeys = 20_000): LocalRateLimiter {
  const buckets = new LRUCache<string, LeakyBucket>({ max: maxKeys });

  return {
    take(key, { intervalMs, burst }) {
      const now = clock.now();
      const bucket = buckets.get(key) ?? newBucket(now);
      // Debt is in milliseconds: a unit owes its interval, and each millisecond pays one.
      leak(bucket, 1, now);
      const waitMs = waitFor(bucket.debt + intervalMs - burst * intervalMs, 1);
      if (waitMs === 0) bucket.debt += intervalMs;
      buckets.set(key, bucket);
      return waitMs;
    },
    giveBack(key, { intervalMs }) {
      const bucket = buckets.get(key);
      if (bucket !== undefined) bucket.debt = Math.max(0, bucket.debt - intervalMs);
    },
  };
}
