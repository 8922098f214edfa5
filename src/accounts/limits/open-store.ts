// The store that the configuration asks for. With Redis, a request that it does not answer for is counted
// in this process instead: inference should not end with a cache.

import type { FastifyBaseLogger } from 'fastify';
import { Counter, type Registry } from 'prom-client';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { createMemoryStore } from './memory-store.ts';
import type { LimitStore, Outcome } from './store.ts';

export interface StoreParts {
  clock: Clock;
  log: FastifyBaseLogger;
  registry: Registry;
}

const warnEveryMs = 10_000;

export async function openLimitStore(
  redisUrl: string | null,
  { clock, log, registry }: StoreParts,
): Promise<LimitStore> {
  const alone = createMemoryStore(clock);
  if (redisUrl === null) return alone;
  // Most servers are alone, and need not load the client.
  const { openRedis } = await import('../../lib/redis.ts');
  const { createRedisStore } = await import('./redis-store.ts');
  const unshared = new Counter({
    name: 'millrace_unshared_limits_total',
    help: 'Requests that were limited by this process alone, because Redis did not answer.',
    registers: [registry],
  });
  let warnedAt = Number.NEGATIVE_INFINITY;
  const warn = (error: unknown) => {
    if (performance.now() - warnedAt < warnEveryMs) return;
    warnedAt = performance.now();
    log.warn({ err: error }, 'Redis does not answer: limits are not shared with other replicas');
  };
  const redis = await openRedis(redisUrl, warn);
  // A clock turned by hand is to be obeyed; else the one clock that all replicas see is Redis' own.
  const shared = createRedisStore(redis, {
    clock: clock === systemClock ? null : clock,
    onError: warn,
  });
  const store = createFallbackStore(shared, alone, (error) => {
    unshared.inc();
    warn(error);
  });
  return {
    reserve: store.reserve,
    async close() {
      await store.close();
      // Answers what was sent before, so that what was settled last is not lost.
      await redis.quit().catch(() => redis.disconnect());
    },
  };
}

/** After a failure the shared store is left alone for so long, so that requests don't all wait for it. */
const restMs = 1000;

export function createFallbackStore(
  shared: LimitStore,
  alone: LimitStore,
  onFallback: (error: unknown) => void,
): LimitStore {
  let restUntil = 0;
  let lastError: unknown = null;

  async function reserve(...ask: Parameters<LimitStore['reserve']>): Promise<Outcome> {
    if (performance.now() >= restUntil) {
      try {
        return await shared.reserve(...ask);
      } catch (error) {
        restUntil = performance.now() + restMs;
        lastError = error;
      }
    }
    onFallback(lastError);
    return alone.reserve(...ask);
  }

  return {
    reserve,
    async close() {
      await shared.close();
      await alone.close();
    },
  };
}
