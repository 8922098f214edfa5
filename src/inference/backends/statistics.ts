// Recent statistics of one backend, for the dashboard and the CLI: requests per second, median time to first token,
// failures. Counted in slots of one second, so that memory does not grow with the load.

import type { Clock } from '#lib/clock.ts';
import { RecentCounts } from '#lib/telemetry/recent-counts.ts';
import type { Observation } from './backend.ts';

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
