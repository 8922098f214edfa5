// Clocks that a test turns by hand.

import type { Clock, SleepOptions } from '#lib/clock.ts';
import { until } from './until.ts';

export interface HandClock extends Clock {
  /** Whatever sleeps until then wakes, in the order of its time. */
  turn(ms: number): void;
  /** As `until`, but turned before each check: the test waits for work, and not for the intervals between it. */
  until<Value>(what: string, check: () => Promise<Value> | Value): Promise<NonNullable<Value>>;
  /** Is turned until the work is done. */
  through<Value>(work: Promise<Value>): Promise<Value>;
}

/** How far it is turned before each check. */
const stepMs = 500;

/** A clock that stands still until a test turns it. */
export function createHandClock(start = Date.parse('2026-01-01T00:00:00Z')): HandClock {
  return createClock(() => start, null);
}

/** A clock that also goes by itself, for tests of real processes and sockets, which take real time. */
export function createRunningClock(start = Date.now()): HandClock {
  const createdAt = performance.now();
  return createClock(() => Math.floor(start + performance.now() - createdAt), setTimeout);
}

interface Sleeper {
  readonly dueAt: number;
  readonly wake: () => void;
}

/** `startTimer` wakes sleepers of a clock that goes by itself. */
function createClock(read: () => number, startTimer: typeof setTimeout | null): HandClock {
  let turnedMs = 0;
  const sleepers = new Set<Sleeper>();
  const now = () => read() + turnedMs;

  function sleep(ms: number, { signal, ref = true }: SleepOptions = {}): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sleeper = { dueAt: now() + ms, wake: resolve };
    const timer = startTimer?.(resolve, ms);
    if (!ref) timer?.unref();
    const abort = () => reject(signal?.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort);
    sleepers.add(sleeper);
    return promise.finally(() => {
      sleepers.delete(sleeper);
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    });
  }

  function turn(ms: number): void {
    turnedMs += ms;
    const due = [...sleepers].filter(({ dueAt }) => dueAt <= now());
    for (const { wake } of due.toSorted((a, b) => a.dueAt - b.dueAt)) wake();
  }

  const untilTurned: HandClock['until'] = (what, check) =>
    until(what, () => {
      turn(stepMs);
      return check();
    });

  return {
    now,
    sleep,
    turn,
    until: untilTurned,
    async through(work) {
      let isDone = false;
      const done = () => {
        isDone = true;
      };
      work.then(done, done);
      await untilTurned('the work is done', () => isDone);
      return work;
    },
  };
}
