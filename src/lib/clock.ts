// Time as a dependency, so that tests can set it instead of sleeping.

import { setTimeout } from 'node:timers/promises';

export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Resolves after this time. Rejects once the signal is aborted. `ref: false` lets the process end meanwhile. */
  sleep(ms: number, options?: SleepOptions): Promise<void>;
}

export interface SleepOptions {
  readonly signal?: AbortSignal;
  readonly ref?: boolean;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, options) => setTimeout(ms, undefined, options),
};
