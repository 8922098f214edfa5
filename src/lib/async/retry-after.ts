// How fast a line of waiting people moves, from its latest departures, so that who is turned away can be
// told when to come back.

import type { Clock } from '#lib/clock.ts';

export interface Pace {
  /** A busy time begins: how long nobody came before it says nothing. */
  begin(): void;
  /** Somebody was done and made place. */
  left(): void;
  /** When somebody with so many before them could have a turn. */
  retryAfterMs(ahead: number): number;
}

const remembered = 32;
const longestRetryMs = 60_000;
const shortestRetryMs = 250;
const unknownRetryMs = 1000;

export function createPace(clock: Clock): Pace {
  const departures: number[] = [];
  let busySince = 0;
  return {
    begin() {
      busySince = clock.now();
      departures.length = 0;
    },
    left() {
      departures.push(clock.now());
      if (departures.length > remembered) departures.shift();
    },
    retryAfterMs(ahead) {
      if (departures.length === 0) return unknownRetryMs;
      const since = departures.length < remembered ? busySince : (departures[0] ?? busySince);
      const msPerDeparture = (clock.now() - since) / departures.length;
      const estimate = Math.ceil(msPerDeparture * (ahead + 1));
      return Math.min(longestRetryMs, Math.max(shortestRetryMs, estimate));
    },
  };
}
