// Closes engines that were removed: each once its last request has ended or its time limit is reached, so that a
// change of configuration or weights cuts no request off.

import type { Clock } from '#lib/clock.ts';

export interface Retiree {
  isIdle(): boolean;
  close(): Promise<void>;
}

export interface Retirement {
  /** Resolves when the engine is closed. */
  retire(one: Retiree): Promise<void>;
  /** Closes all that are left at once. */
  closeAll(): Promise<void>;
}

export interface RetirementOptions {
  /** How long the running requests may take. Default 10 minutes. */
  readonly maxMs?: number;
  /** How often it is checked whether an engine is idle. Default 500 ms. */
  readonly checkEveryMs?: number;
}

export function createRetirement(clock: Clock, options: RetirementOptions = {}): Retirement {
  const { maxMs = 10 * 60_000, checkEveryMs = 500 } = options;
  const waiting = new Map<Retiree, () => void>();

  return {
    retire(one) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const deadline = clock.now() + maxMs;
      const end = () => {
        clearInterval(timer);
        waiting.delete(one);
        resolve(one.close());
      };
      // Not at once: a request may just have chosen the engine and not reached it yet.
      const timer = setInterval(() => {
        if (one.isIdle() || clock.now() >= deadline) end();
      }, checkEveryMs).unref();
      waiting.set(one, end);
      return promise;
    },
    async closeAll() {
      const left = [...waiting];
      for (const [, end] of left) end();
      await Promise.all(left.map(([one]) => one.close()));
    },
  };
}
