// A clock that stands still until a test turns it.

import type { Clock } from '#lib/clock.ts';

export interface HandClock extends Clock {
  turn(ms: number): void;
}

export function createHandClock(start = Date.parse('2026-01-01T00:00:00Z')): HandClock {
  let now = start;
  return {
    now: () => now,
    turn(ms) {
      now += ms;
    },
  };
}
