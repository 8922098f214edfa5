// State that several servers share beside the database: limits and rates, in the Valkey or Redis that the
// configuration names. Without one, or while it does not respond, this process counts for itself, because a failed
// cache must not fail requests.

import type { FastifyBaseLogger } from 'fastify';
import { Counter, type Registry } from 'prom-client';
import { createMemoryStore } from '#accounts/limits/memory-store.ts';
import type { LimitStore } from '#accounts/limits/store.ts';
import type { Clock } from '#lib/clock.ts';
import { createRateLimiter, type RateLimiter } from '#lib/limits/rate-limit.ts';

export interface SharedState {
  limits: LimitStore;
  rates: RateLimiter;
  close(): Promise<void>;
}

const warnEveryMs = 10_000;

export async function openSharedState(
  redisUrl: string | null,
  clock: Clock,
  { log, registry }: { log: FastifyBaseLogger; registry: Registry },
): Promise<SharedState> {
  const limits = createMemoryStore(clock);
  const rates = createRateLimiter(clock);
  if (redisUrl === null) return { limits, rates, close: async () => {} };
  // Loaded only if configured, because most servers run alone.
  const { openRedis, withFallback } = await import('#lib/limits/redis.ts');
  const { createSharedRateLimiter } = await import('#lib/limits/shared-rate-limit.ts');
  const { createRedisStore } = await import('#accounts/limits/redis-store.ts');
  const { withOwnShare } = await import('#accounts/limits/own-share.ts');
  const unshared = new Counter({
    name: 'millrace_unshared_limits_total',
    help: 'Requests that were limited by this process alone, because Redis did not answer.',
    registers: [registry],
  });
  let warnedAt = Number.NEGATIVE_INFINITY;
  const warn = (error: unknown) => {
    if (performance.now() - warnedAt < warnEveryMs) return;
    warnedAt = performance.now();
    log.warn({ err: error }, 'Redis does not answer: limits are not shared with other servers');
  };
  const onFallback = (error: unknown) => {
    unshared.inc();
    warn(error);
  };
  const redis = await openRedis(redisUrl, clock, warn);
  const store = withOwnShare(createRedisStore(redis), limits);
  const sharedRates = createSharedRateLimiter(redis);
  return {
    limits: {
      reserve: withFallback(store.reserve, limits.reserve, onFallback),
      check: withFallback(store.check, limits.check, onFallback),
      takeOver: withFallback(store.takeOver, limits.takeOver, onFallback),
      close: store.close,
    },
    rates: {
      take: withFallback(sharedRates.take, rates.take, onFallback),
      giveBack: withFallback(sharedRates.giveBack, rates.giveBack, onFallback),
    },
    async close() {
      await store.close();
      await redis.close();
    },
  };
}
