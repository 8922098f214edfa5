// Limits, queue and retention of the configuration, in the words of those who keep to them.

import { changeLimits, unlimited } from './accounts/limits/limit-set.ts';
import type { Config } from './config/schema.ts';

/** Of keys that are made from now on. */
export const toKeyDefaults = ({ limits }: Config) => changeLimits(unlimited, limits.key);

export const toAccountDefaults = ({ limits }: Config) => changeLimits(unlimited, limits.account);

export const toQueueLimits = ({ inference: { queue } }: Config) => ({
  length: queue.length,
  waitMs: queue.wait_seconds * 1000,
});

export const toUsageRetention = ({ usage }: Config) => ({
  requestDays: usage.request_days,
  hourDays: usage.hour_days,
});
