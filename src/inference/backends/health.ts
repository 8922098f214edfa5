// What the requests of a backend show about it. Its health is a circuit breaker: consecutive
// failures eject it, for longer each time. After that it is on probation: one request at a time
// probes it, and a success makes it healthy again. Its statistics are for the dashboard and the
// CLI: requests per second, median time to first token, failures.

import type { Clock } from '#lib/clock.ts';
import { RecentCounts } from '#lib/telemetry/recent-counts.ts';
import type { Health, Observation } from './backend.ts';

export interface HealthSettings {
  /** Consecutive failures that eject a backend. */
  readonly ejectAfter: number;
  /** Duration of the first ejection. It doubles each time. */
  readonly ejectMs: number;
  readonly maxEjectMs: number;
}

export interface HealthRecord extends Health {
  /** The backend responded to a probe: it may be tried if it was ejected, but only a request makes it healthy. */
  responded(): void;
  /** True if the last result was the success of a request. */
  isServing(): boolean;
  /** A request failed, whether or not the backend is to blame. */
  requestFailed(reason: string): void;
  /** How the last request failed, until one succeeds; null if it did not. */
  lastFailure(): string | null;
  /** Reason of the last failure; null if healthy. */
  reason(): string | null;
  ejections(): number;
}

export interface HealthOptions {
  /** Called at each use, because the configuration may change. */
  settings(): HealthSettings;
  /** A number from 0 to 1. Spreads the retries of servers that saw the same failure. */
  random?(): number;
  onEjected?(reason: string, forMs: number): void;
}

export function createHealth(clock: Clock, options: HealthOptions): HealthRecord {
  const { settings, random = Math.random, onEjected = () => {} } = options;
  let ejections = 0;
  let trouble = newTrouble();
  let isServing = false;
  /** Whose request got the last response if that could not be read. */
  let spoiltFor: string | null = null;
  let lastFailure: string | null = null;

  function state(): ReturnType<Health['state']> {
    if (trouble.ejectedUntil === null) return 'healthy';
    return clock.now() < trouble.ejectedUntil ? 'ejected' : 'probation';
  }

  function eject(why: string): void {
    const forMs = toEjectionMs(settings(), trouble.streak) * (0.75 + 0.25 * random());
    trouble.streak += 1;
    ejections += 1;
    trouble.ejectedUntil = clock.now() + forMs;
    onEjected(why, forMs);
  }

  function responded(): void {
    if (state() === 'ejected') trouble.ejectedUntil = clock.now();
  }

  function failed(why: string): void {
    isServing = false;
    spoiltFor = null;
    const now = state();
    // Requests that were running at the ejection may fail too. They are not counted again.
    if (now === 'ejected') return;
    trouble.reason = why;
    trouble.failures += 1;
    if (now === 'probation' || trouble.failures >= settings().ejectAfter) eject(why);
  }

  return {
    state,
    retryAfterMs: () =>
      trouble.ejectedUntil === null ? 0 : Math.max(0, trouble.ejectedUntil - clock.now()),
    succeeded() {
      isServing = true;
      spoiltFor = null;
      lastFailure = null;
      // The request was sent before the ejection, so it proves no more than a probe does.
      if (state() === 'ejected') return responded();
      trouble = newTrouble();
    },
    failed,
    spoilt(why, client) {
      if (spoiltFor !== null && spoiltFor !== client) failed(why);
      spoiltFor = client;
    },
    responded,
    isServing: () => isServing,
    requestFailed(why) {
      lastFailure = why;
    },
    lastFailure: () => lastFailure,
    reason: () => trouble.reason,
    ejections: () => ejections,
  };
}

/** What went wrong since the backend was last healthy. */
interface Trouble {
  /** Consecutive. */
  failures: number;
  /** Ejections in a row. */
  streak: number;
  ejectedUntil: number | null;
  reason: string | null;
}

const newTrouble = (): Trouble => ({ failures: 0, streak: 0, ejectedUntil: null, reason: null });

/** The exponent is bounded so that the product stays finite. */
const toEjectionMs = ({ ejectMs, maxEjectMs }: HealthSettings, streak: number) =>
  Math.min(ejectMs * 2 ** Math.min(streak, 30), maxEjectMs);

/** The health of local engines, which restart themselves and report when they can't. */
export const alwaysHealthy: HealthRecord = {
  state: () => 'healthy',
  retryAfterMs: () => 0,
  succeeded() {},
  failed() {},
  spoilt() {},
  responded() {},
  isServing: () => true,
  requestFailed() {},
  lastFailure: () => null,
  reason: () => null,
  ejections: () => 0,
};

export interface Statistics {
  observe(request: Observation): void;
  /** Average over the last minute. */
  requestsPerSecond(): number;
  /** Median of the last hundred; null if there is none. */
  firstTokenMs(): number | null;
  /** Requests and failures in the last five minutes. */
  requests(): number;
  errors(): number;
  /** The last failure in the last five minutes; null if there was none. */
  lastError(): string | null;
}

const slots = 300;
const requestSeconds = 60;
const timings = 100;

/** Counted in slots of one second, so that memory does not grow with the load. */
export function createStatistics(clock: Clock): Statistics {
  const requests = new RecentCounts(clock, 1000, slots);
  const errors = new RecentCounts(clock, 1000, slots);
  const firstTokens = new Float64Array(timings);
  let timed = 0;
  let lastError: string | null = null;

  return {
    observe({ firstTokenMs, error }) {
      requests.add();
      if (error !== null) {
        errors.add();
        lastError = error;
      }
      if (firstTokenMs === null) return;
      firstTokens[timed % timings] = firstTokenMs;
      timed += 1;
    },
    requestsPerSecond: () => requests.sum(requestSeconds) / requestSeconds,
    firstTokenMs() {
      const known = firstTokens.slice(0, Math.min(timed, timings)).sort();
      return known.length === 0 ? null : (known[Math.floor((known.length - 1) / 2)] as number);
    },
    requests: () => requests.sum(),
    errors: () => errors.sum(),
    lastError: () => (errors.sum() === 0 ? null : lastError),
  };
}
