// Estimates when a refused caller should try again, from the rate at which a queue has been moving.

import type { Clock } from '#lib/clock.ts';

export interface RetryAfterEstimator {
  /** Call when the queue becomes busy: idle time before it says nothing about its rate. */
  start(): void;
  /** Call when an item leaves and frees a place. */
  departed(): void;
  /** Milliseconds until an item with this many ahead of it is likely to be served. */
  retryAfterMs(ahead: number): number;
}

/** The estimate is the average of the latest departures. */
const maxDepartures = 32;
const maxRetryMs = 60_000;
const minRetryMs = 250;
/** Used before the first departure. */
const defaultRetryMs = 1000;

export function createRetryAfterEstimator(clock: Clock): RetryAfterEstimator {
  const departures: number[] = [];
  let busySince = 0;
  return {
    start() {
      busySince = clock.now();
      departures.length = 0;
    },
    departed() {
      departures.push(clock.now());
      if (departures.length > maxDepartures) departures.shift();
    },
    retryAfterMs(ahead) {
      if (departures.length === 0) return defaultRetryMs;
      const since = departures.length < maxDepartures ? busySince : (departures[0] ?? busySince);
      const msPerDeparture = (clock.now() - since) / departures.length;
      const estimate = Math.ceil(msPerDeparture * (ahead + 1));
      return Math.min(maxRetryMs, Math.max(minRetryMs, estimate));
    },
  };
}
