// A connection to Valkey or Redis that is never waited for: commands fail at once while it is away, and it
// comes back by itself.

import { Redis } from 'ioredis';

const connectMs = 2000;
const commandMs = 500;
const maxRetryMs = 2000;

/** Returns when it answers, or after a first failure, which is told like all later ones. */
export async function openRedis(url: string, onError: (error: unknown) => void): Promise<Redis> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: connectMs,
    commandTimeout: commandMs,
    enableOfflineQueue: false,
    // A command whose connection broke may have been carried out: it is not sent again.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: (times) => Math.min(times * 100, maxRetryMs),
  });
  redis.on('error', onError);
  await redis.connect().catch(onError);
  return redis;
}
