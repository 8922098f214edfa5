// Whether a backend is worth sending to: failures in a row eject it, for longer each time; when that is over
// one request may find out, and a success makes it well again.

import type { Clock } from '#lib/clock.ts';
import type { Health } from './backend.ts';

export interface HealthSettings {
  /** Failures in a row that eject. */
  readonly ejectAfter: number;
  /** The first time; twice as long each time after. */
  readonly ejectMs: number;
  readonly ejectMsMost: number;
}

export interface HealthRecord extends Health {
  /** It answered a probe: an ejected one may be tried, but only a request makes it well. */
  answered(): void;
  /** What the last failure was; null when it is well. */
  reason(): string | null;
  ejections(): number;
}

export interface HealthOptions {
  /** Asked each time: the configuration may be read again. */
  settings(): HealthSettings;
  /** From 0 to 1, so that servers that saw the same failure don't come back as one. */
  random?(): number;
  onEjected?(reason: string, forMs: number): void;
}

export function createHealth(clock: Clock, options: HealthOptions): HealthRecord {
  const { settings, random = Math.random, onEjected = () => {} } = options;
  let failures = 0;
  /** Ejections since it was last well. */
  let streak = 0;
  let ejections = 0;
  let ejectedUntil: number | null = null;
  let reason: string | null = null;

  function state(): ReturnType<Health['state']> {
    if (ejectedUntil === null) return 'healthy';
    return clock.now() < ejectedUntil ? 'ejected' : 'probation';
  }

  function eject(why: string): void {
    const { ejectMs, ejectMsMost } = settings();
    // Past 2^30 only the limit counts.
    const grown = Math.min(ejectMs * 2 ** Math.min(streak, 30), ejectMsMost);
    const forMs = grown * (0.75 + 0.25 * random());
    streak += 1;
    ejections += 1;
    ejectedUntil = clock.now() + forMs;
    onEjected(why, forMs);
  }

  function answered(): void {
    if (state() === 'ejected') ejectedUntil = clock.now();
  }

  return {
    state,
    retryAfterMs: () => (ejectedUntil === null ? 0 : Math.max(0, ejectedUntil - clock.now())),
    succeeded() {
      // A request from before the ejection: it shows no more than a probe does.
      if (state() === 'ejected') return answered();
      failures = 0;
      streak = 0;
      ejectedUntil = null;
      reason = null;
    },
    failed(why) {
      const now = state();
      // Others of the requests that ejected it: what is known is not counted again.
      if (now === 'ejected') return;
      reason = why;
      failures += 1;
      if (now === 'probation' || failures >= settings().ejectAfter) eject(why);
    },
    answered,
    reason: () => reason,
    ejections: () => ejections,
  };
}

/** For engines in our own care: they start themselves again and say when they can't. */
export const alwaysHealthy: HealthRecord = {
  state: () => 'healthy',
  retryAfterMs: () => 0,
  succeeded() {},
  failed() {},
  answered() {},
  reason: () => null,
  ejections: () => 0,
};
