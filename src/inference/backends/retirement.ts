// Engines that are no longer wanted: each is closed when it has answered what it was asked, or when its time
// is up, so that a change of configuration or weights cuts nobody off.

import type { Clock } from '#lib/clock.ts';

export interface Retiree {
  isIdle(): boolean;
  close(): Promise<void>;
}

export interface Retirement {
  /** Resolves when it is closed. */
  retire(one: Retiree): Promise<void>;
  /** Closes what is left, at once. */
  closeAll(): Promise<void>;
}

export interface RetirementOptions {
  /** How long an engine may go on with the requests it has. */
  readonly limitMs?: number;
  readonly lookEveryMs?: number;
}

export function createRetirement(clock: Clock, options: RetirementOptions = {}): Retirement {
  const { limitMs = 10 * 60_000, lookEveryMs = 500 } = options;
  const waiting = new Map<Retiree, () => void>();

  return {
    retire(one) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const deadline = clock.now() + limitMs;
      const end = () => {
        clearInterval(look);
        waiting.delete(one);
        resolve(one.close());
      };
      // Not at once: somebody may just have chosen it and not begun.
      const look = setInterval(() => {
        if (one.isIdle() || clock.now() >= deadline) end();
      }, lookEveryMs).unref();
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
