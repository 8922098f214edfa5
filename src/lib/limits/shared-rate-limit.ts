// The rate limiter of rate-limit.ts with its timestamps in Valkey or Redis, shared by several servers.

import type { RateLimiter } from './rate-limit.ts';
import { createScript, type SharedRedis } from './redis.ts';

/** ARGV: now, milliseconds until one unit is available again, burst. */
const takeScript = `
local interval, burst = tonumber(ARGV[2]), tonumber(ARGV[3])
local start = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
local wait = start + interval - burst * interval - now
if wait > 0 then return math.ceil(wait) end
local fullAt = start + interval
local lifeMs = math.max(1, math.ceil(fullAt - now))
redis.call('SET', KEYS[1], string.format('%.3f', fullAt), 'PX', lifeMs)
return 0
`;

export function createSharedRateLimiter(shared: SharedRedis): RateLimiter {
  const take = createScript(shared, takeScript);
  return {
    take: async (key, { intervalMs, burst }) =>
      Number(await take([`millrace:rate:${key}`], [shared.now(), intervalMs, burst])),
  };
}
