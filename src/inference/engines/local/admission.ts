// Who may wait for the model: a bounded line, a longest wait, and how long a caller who is turned away
// should stay away, from the pace at which requests have been leaving.

import { type Clock, systemClock } from '../../../lib/clock.ts';
import { EngineError } from '../../engine.ts';

export interface AdmissionLimits {
  /** Requests that may wait for their first sequence. */
  waiting: number;
  waitMs: number;
}

export interface Ticket {
  /** It waits no longer. */
  started(): void;
  /** It is gone, for whatever reason. Idempotent. */
  left(): void;
}

export interface Admission {
  /** Throws EngineError `overloaded` when the line is full. `onLate` is called after the longest wait. */
  enter(onLate: (error: EngineError) => void): Ticket;
  overloaded(message: string): EngineError;
  readonly waiting: number;
}

const remembered = 32;
const longestRetryMs = 60_000;
const shortestRetryMs = 250;

export function createAdmission(limits: AdmissionLimits, clock: Clock = systemClock): Admission {
  const departures: number[] = [];
  let waiting = 0;

  function retryAfterMs(): number {
    const first = departures[0];
    if (first === undefined) return 1000;
    const msPerRequest = (clock.now() - first) / departures.length;
    const estimate = Math.ceil(msPerRequest * (waiting + 1));
    return Math.min(longestRetryMs, Math.max(shortestRetryMs, estimate));
  }

  const overloaded = (message: string) =>
    new EngineError('overloaded', message, { retryAfterMs: retryAfterMs() });

  return {
    overloaded,
    get waiting() {
      return waiting;
    },
    enter(onLate) {
      if (waiting >= limits.waiting)
        throw overloaded(`${waiting} requests are waiting already, which is as many as may.`);
      waiting++;
      let state: 'waiting' | 'running' | 'gone' = 'waiting';
      const timer = setTimeout(() => {
        onLate(overloaded(`The request waited ${limits.waitMs} ms for its turn.`));
      }, limits.waitMs).unref();
      function started(): void {
        if (state !== 'waiting') return;
        state = 'running';
        waiting--;
        clearTimeout(timer);
      }
      return {
        started,
        left() {
          if (state === 'gone') return;
          if (state === 'running') {
            departures.push(clock.now());
            if (departures.length > remembered) departures.shift();
          }
          started();
          state = 'gone';
        },
      };
    },
  };
}
