// A connection to Valkey or Redis that never makes a request wait: commands fail at once while it is down, and
// it reconnects by itself. Meanwhile each caller falls back to this process's own memory.

import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { type Clock, systemClock } from '#lib/clock.ts';

export interface SharedRedis {
  readonly redis: Redis;
  /** The time for scripts. '' makes a script read Redis' own clock, the only one that all servers share. */
  now(): number | '';
  onError(error: unknown): void;
  /** Waits for the commands already sent, then disconnects. */
  close(): Promise<void>;
}

const connectMs = 2000;
const replyMs = 500;
/** The timeout of commands other than scripts, such as those of connecting and quitting. */
const commandMs = 2000;
const maxRetryMs = 2000;

/** Returns when Redis answers or after the first failure, which is reported to `onError` like later ones. */
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
    // A command whose connection broke may have been executed, so it is never sent again.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // After a failover the old primary answers READONLY. Reconnecting finds the new one.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
    retryStrategy: (times) => Math.min(times * 100, maxRetryMs),
  });
  redis.on('error', onError);
  await redis.connect().catch(onError);
  return {
    redis,
    // A test's clock overrides that of Redis.
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

/** A Lua script that Redis runs atomically. It finds the time in `now`, in milliseconds, from its first argument. */
export function createScript({ redis, onError }: SharedRedis, body: string): Script {
  const text = `${readClock}${body}`;
  const sha = createHash('sha1').update(text).digest('hex');
  const load = () => {
    redis.script('LOAD', text).catch(onError);
  };
  // Loaded before its first use, so that commands are executed in the order they were sent.
  redis.on('ready', load);
  if (redis.status === 'ready') load();
  return async (keys, args) => {
    try {
      return await withReplyTimeout(redis.evalsha(sha, keys.length, ...keys, ...args));
    } catch (error) {
      // The script cache was flushed.
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
      return withReplyTimeout(redis.eval(text, keys.length, ...keys, ...args));
    }
  };
}

/**
 * Rejects if there is no reply in time. ioredis' own timeout would also reject when this process was paused: its
 * timer fires before the replies that arrived meanwhile are read. Here they are read first.
 */
function withReplyTimeout<Reply>(reply: Promise<Reply>): Promise<Reply> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    const fail = () => reject(new Error(`Redis did not reply within ${replyMs} ms.`));
    timer = setTimeout(() => setImmediate(fail), replyMs);
  });
  return Promise.race([reply, timeout]).finally(() => clearTimeout(timer));
}

const readClock = `
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
`;

/** After a failure `shared` is not tried for this long, so that requests don't all wait for its timeout. */
const pauseMs = 1000;

/** Calls `shared`, or `alone` if that fails. */
export function withFallback<Arguments extends unknown[], Result>(
  shared: (...args: Arguments) => Result | Promise<Result>,
  alone: (...args: Arguments) => Result | Promise<Result>,
  onFallback: (error: unknown) => void,
): (...args: Arguments) => Promise<Result> {
  let pausedUntil = 0;
  let lastError: unknown = null;
  return async (...args) => {
    if (performance.now() >= pausedUntil) {
      try {
        return await shared(...args);
      } catch (error) {
        pausedUntil = performance.now() + pauseMs;
        lastError = error;
      }
    }
    onFallback(lastError);
    return alone(...args);
  };
}
