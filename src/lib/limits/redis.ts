// A connection to Valkey or Redis that is never waited for long: commands fail at once while it is away, and
// it comes back by itself. What is asked of it can be answered by this process alone meanwhile.

import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { type Clock, systemClock } from '#lib/clock.ts';

export interface SharedRedis {
  readonly redis: Redis;
  /** For scripts: '' has them read Redis' own clock, the only one that all replicas share. */
  now(): number | '';
  onError(error: unknown): void;
  /** Answers what was sent before, then leaves. */
  close(): Promise<void>;
}

const connectMs = 2000;
const commandMs = 500;
const maxRetryMs = 2000;

/** Returns when it answers, or after a first failure, which is told like all later ones. */
export async function openRedis(
  url: string,
  clock: Clock,
  onError: (error: unknown) => void,
): Promise<SharedRedis> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: connectMs,
    commandTimeout: commandMs,
    enableOfflineQueue: false,
    // A command whose connection broke may have been carried out: it is not sent again.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // After a failover the old one still answers, and takes nothing: connecting anew finds the new one.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
    retryStrategy: (times) => Math.min(times * 100, maxRetryMs),
  });
  redis.on('error', onError);
  await redis.connect().catch(onError);
  return {
    redis,
    // One turned by hand is to be obeyed.
    now: () => (clock === systemClock ? '' : clock.now()),
    onError,
    close: async () => {
      await redis.quit().catch(() => redis.disconnect());
    },
  };
}

export type Script = (
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

/** Lua that Redis runs as one step. It finds `now` in milliseconds there, from its first argument. */
export function createScript({ redis, onError }: SharedRedis, body: string): Script {
  const text = `${readClock}${body}`;
  const sha = createHash('sha1').update(text).digest('hex');
  const load = () => {
    redis.script('LOAD', text).catch(onError);
  };
  // Ahead of its first use, so that what is sent first is also done first.
  redis.on('ready', load);
  if (redis.status === 'ready') load();
  return async (keys, args) => {
    try {
      return await redis.evalsha(sha, keys.length, ...keys, ...args);
    } catch (error) {
      // Somebody had it forget its scripts.
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
      return redis.eval(text, keys.length, ...keys, ...args);
    }
  };
}

const readClock = `
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
`;

/** After a failure the shared answer is not asked for so long, so that requests don't all wait for it. */
const restMs = 1000;

/** Asks `shared`, or `alone` when that fails. */
export function withFallback<Ask extends unknown[], Answer>(
  shared: (...ask: Ask) => Answer | Promise<Answer>,
  alone: (...ask: Ask) => Answer | Promise<Answer>,
  onFallback: (error: unknown) => void,
): (...ask: Ask) => Promise<Answer> {
  let restUntil = 0;
  let lastError: unknown = null;
  return async (...ask) => {
    if (performance.now() >= restUntil) {
      try {
        return await shared(...ask);
      } catch (error) {
        restUntil = performance.now() + restMs;
        lastError = error;
      }
    }
    onFallback(lastError);
    return alone(...ask);
  };
}
