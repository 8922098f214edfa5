// The rate limiter of rate-limit.ts with its buckets in Valkey or Redis, shared by several servers.

import { leakScript } from './leaky-bucket.ts';
import type { RateLimiter } from './rate-limit.ts';
import { createScript, type SharedRedis } from './redis.ts';

/** ARGV: now, milliseconds until one unit is available again, burst. */
const takeScript = `${leakScript}
local interval, burst = tonumber(ARGV[2]), tonumber(ARGV[3])
local saved = redis.call('HMGET', KEYS[1], 'debt', 'at')
local debt, at = leak(tonumber(saved[1] or 0), tonumber(saved[2] or now), 1)
local wait = math.max(0, math.ceil(debt + interval - burst * interval))
if wait == 0 then debt = debt + interval end
redis.call('HSET', KEYS[1], 'debt', string.format('%.3f', debt), 'at', string.format('%.0f', at))
redis.call('PEXPIRE', KEYS[1], math.max(1, math.ceil(debt)))
return wait
`;

/** ARGV: now, the debt of one unit. */
const giveBackScript = `
local debt = tonumber(redis.call('HGET', KEYS[1], 'debt') or 0)
if debt == 0 then return 0 end
redis.call('HSET', KEYS[1], 'debt', string.format('%.3f', math.max(0, debt - tonumber(ARGV[2]))))
return 0
`;

export function createSharedRateLimiter(shared: SharedRedis): RateLimiter {
  const take = createScript(shared, takeScript);
  const giveBack = createScript(shared, giveBackScript);
  return {
    take: async (key, { intervalMs, burst }) =>
      Number(await take([`millrace:bucket:${key}`], [shared.now(), intervalMs, burst])),
    giveBack: async (key, { intervalMs }) => {
      await giveBack([`millrace:bucket:${key}`], [shared.now(), intervalMs]);
    },
  };
}
