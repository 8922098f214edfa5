// Who may wait for the model: a bounded line, a longest wait, and how long a caller who is turned away
// should stay away, from the pace at which requests have been leaving.

import { EngineError } from '#inference/engine.ts';
import { createRetryAfterEstimator } from '#lib/async/retry-after.ts';
import { type Clock, systemClock } from '#lib/clock.ts';

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
  /**
   * Throws EngineError `overloaded` when the line is full of requests of this caller. Where another caller
   * has more of them waiting, that one's newest is turned away instead. `onRefused` is called for that, and
   * after the longest wait.
   */
  enter(caller: string, onRefused: (error: EngineError) => void): Ticket;
  overloaded(message: string): EngineError;
  readonly waiting: number;
}

interface Waiting {
  refuse(error: EngineError): void;
}

export function createAdmission(limits: AdmissionLimits, clock: Clock = systemClock): Admission {
  const retryAfter = createRetryAfterEstimator(clock);
  /** Of each caller, oldest first. */
  const lines = new Map<string, Set<Waiting>>();
  let waiting = 0;
  let present = 0;

  const overloaded = (message: string) =>
    new EngineError('overloaded', message, { retryAfterMs: retryAfter.retryAfterMs(waiting) });

  function makePlace(caller: string): void {
    const own = lines.get(caller)?.size ?? 0;
    const longest = [...lines.values()].reduce(
      (best, line) => (line.size > best.size ? line : best),
      new Set<Waiting>(),
    );
    const full = overloaded(`${waiting} requests are waiting already, which is as many as may.`);
    if (longest.size <= own + 1) throw full;
    [...longest].at(-1)?.refuse(full);
  }

  return {
    overloaded,
    get waiting() {
      return waiting;
    },
    enter(caller, onRefused) {
      if (waiting >= limits.waiting) makePlace(caller);
      if (present++ === 0) retryAfter.start();
      const line = lines.get(caller) ?? new Set();
      lines.set(caller, line);
      const entry: Waiting = { refuse: onRefused };
      line.add(entry);
      waiting++;
      let state: 'waiting' | 'running' | 'gone' = 'waiting';
      const timer = setTimeout(() => {
        onRefused(overloaded(`The request waited ${limits.waitMs} ms for its turn.`));
      }, limits.waitMs).unref();
      function started(): void {
        if (state !== 'waiting') return;
        state = 'running';
        line.delete(entry);
        if (line.size === 0) lines.delete(caller);
        waiting--;
        clearTimeout(timer);
      }
      return {
        started,
        left() {
          if (state === 'gone') return;
          if (state === 'running') retryAfter.departed();
          started();
          state = 'gone';
          present--;
        },
      };
    },
  };
}
