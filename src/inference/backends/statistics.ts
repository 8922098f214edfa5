// Recent statistics of one backend, for the dashboard and the CLI: requests per second, median time to first token,
// failures. Counted in slots of one second, so that memory does not grow with the load.

import type { Clock } from '#lib/clock.ts';
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
  /** The second that each slot counts. */
  const seconds = new Float64Array(slots);
  const requests = new Uint32Array(slots);
  const errors = new Uint32Array(slots);
  const firstTokens = new Float64Array(timings);
  let timed = 0;
  let lastError: string | null = null;
  const secondNow = () => Math.floor(clock.now() / 1000);

  function sum(counts: Uint32Array, lastSeconds: number): number {
    const from = secondNow() - lastSeconds;
    let total = 0;
    for (let slot = 0; slot < slots; slot++) {
      if ((seconds[slot] as number) > from) total += counts[slot] as number;
    }
    return total;
  }

  return {
    observe({ firstTokenMs, error }) {
      const second = secondNow();
      const slot = second % slots;
      if (seconds[slot] !== second) {
        seconds[slot] = second;
        requests[slot] = 0;
        errors[slot] = 0;
      }
      requests[slot] = (requests[slot] as number) + 1;
      if (error !== null) {
        errors[slot] = (errors[slot] as number) + 1;
        lastError = error;
      }
      if (firstTokenMs === null) return;
      firstTokens[timed % timings] = firstTokenMs;
      timed += 1;
    },
    requestsPerSecond: () => sum(requests, requestSeconds) / requestSeconds,
    firstTokenMs() {
      const known = firstTokens.slice(0, Math.min(timed, timings)).sort();
      return known.length === 0 ? null : (known[Math.floor((known.length - 1) / 2)] as number);
    },
    requests: () => sum(requests, slots),
    errors: () => sum(errors, slots),
    lastError: () => (sum(errors, slots) === 0 ? null : lastError),
  };
}
