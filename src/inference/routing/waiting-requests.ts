// Those who wait for a place at one model: bounded, fair between callers, by priority, until a deadline.
// Knows nothing of backends; the router says who may go.

import { EngineError } from '#inference/engine.ts';
import { FairQueue } from '#lib/async/fair-queue.ts';
import { createRetryAfterEstimator } from '#lib/async/retry-after.ts';
import type { Clock } from '#lib/clock.ts';

export interface QueueLimits {
  /** Requests that may wait for one model. */
  length: number;
  waitMs: number;
}

export interface Waiter {
  readonly caller: string;
  readonly priority: number;
  /** Unix milliseconds; set when it enters. */
  deadlineMs: number;
  refuse(error: EngineError): void;
}

export type RefusalReason = 'full' | 'deadline';

export interface WaitingLine<One extends Waiter> {
  readonly size: number;
  /**
   * Throws EngineError `overloaded` when the line is full of this caller's requests. Where another caller
   * has more of them waiting, that one's newest is refused instead.
   */
  enter(waiter: One): void;
  /** The next one that may go; it waits no longer. */
  take(mayGo: (waiter: One) => boolean): One | undefined;
  /** False when it was not waiting any more. */
  leave(waiter: One): boolean;
  /** Refuses those who have waited too long. */
  expire(): void;
  /** Refuses all. */
  clear(error: EngineError): void;
  /** A request of this model was done: the pace of these says when to come back. */
  moved(): void;
}

export function createWaitingLine<One extends Waiter>(
  limits: QueueLimits,
  clock: Clock,
  onRefused: (reason: RefusalReason) => void,
): WaitingLine<One> {
  const queue = new FairQueue<One>();
  /** Of each caller, oldest first. */
  const byCaller = new Map<string, Set<One>>();
  const retryAfter = createRetryAfterEstimator(clock);

  function refuse(waiter: One, reason: RefusalReason, error: EngineError): void {
    if (!leave(waiter)) return;
    onRefused(reason);
    waiter.refuse(error);
  }

  const overloaded = (message: string) =>
    new EngineError('overloaded', message, { retryAfterMs: retryAfter.retryAfterMs(queue.size) });

  function makePlace({ caller }: One): void {
    const own = byCaller.get(caller)?.size ?? 0;
    let longest = new Set<One>();
    for (const line of byCaller.values()) if (line.size > longest.size) longest = line;
    const full = overloaded(`${queue.size} requests are waiting already, which is as many as may.`);
    const newest = [...longest].at(-1);
    if (newest === undefined || longest.size <= own + 1) {
      onRefused('full');
      throw full;
    }
    refuse(newest, 'full', full);
  }

  function forget(waiter: One): void {
    const line = byCaller.get(waiter.caller);
    line?.delete(waiter);
    if (line?.size === 0) byCaller.delete(waiter.caller);
  }

  function leave(waiter: One): boolean {
    if (!queue.remove(waiter.caller, waiter, waiter.priority)) return false;
    forget(waiter);
    return true;
  }

  const everyone = () => [...byCaller.values()].flatMap((line) => [...line]);

  return {
    get size() {
      return queue.size;
    },
    leave,
    enter(waiter) {
      if (queue.size >= limits.length) makePlace(waiter);
      if (queue.size === 0) retryAfter.start();
      waiter.deadlineMs = clock.now() + limits.waitMs;
      queue.push(waiter.caller, waiter, waiter.priority);
      const line = byCaller.get(waiter.caller);
      if (line === undefined) byCaller.set(waiter.caller, new Set([waiter]));
      else line.add(waiter);
    },
    take(mayGo) {
      const waiter = queue.take(mayGo);
      if (waiter !== undefined) forget(waiter);
      return waiter;
    },
    expire() {
      const now = clock.now();
      for (const waiter of everyone()) {
        // A clock that was set back makes nobody wait for longer than was said.
        waiter.deadlineMs = Math.min(waiter.deadlineMs, now + limits.waitMs);
        if (waiter.deadlineMs > now) continue;
        refuse(waiter, 'deadline', overloaded('The request waited too long for its turn.'));
      }
    },
    clear(error) {
      for (const waiter of everyone()) if (leave(waiter)) waiter.refuse(error);
    },
    moved() {
      if (queue.size > 0) retryAfter.departed();
    },
  };
}
