// A fair queue with a maximum length and a maximum wait. If it is full, the newest item of the caller with the most
// items makes room for a caller with fewer, so that one busy caller can't keep the others out.

import type { Clock } from '#lib/clock.ts';
import { backgroundPriority, FairQueue } from './fair-queue.ts';
import type { RetryAfterEstimator } from './retry-after.ts';

/** Read at each use, so that the limits may change while items wait. */
export interface QueueLimits {
  readonly maxLength: number;
  readonly maxWaitMs: number;
}

export interface QueueItem {
  readonly caller: string;
  /** Lower goes first. */
  readonly priority: number;
  /** Called when the queue removes the item because it was evicted or has waited too long. */
  refuse(refusal: QueueRefusal): void;
}

export type RefusalReason = 'full' | 'deadline';

export class QueueRefusal extends Error {
  readonly reason: RefusalReason;
  readonly retryAfterMs: number;

  constructor(reason: RefusalReason, message: string, retryAfterMs: number) {
    super(message);
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

export class BoundedFairQueue<Item extends QueueItem> {
  readonly #queue = new FairQueue<Item>();
  /** The deadline of each caller's items in Unix milliseconds, oldest first. */
  readonly #byCaller = new Map<string, Map<Item, number>>();
  readonly #limits: QueueLimits;
  readonly #clock: Clock;
  readonly #retryAfter: RetryAfterEstimator;

  constructor(limits: QueueLimits, clock: Clock, retryAfter: RetryAfterEstimator) {
    this.#limits = limits;
    this.#clock = clock;
    this.#retryAfter = retryAfter;
  }

  get size(): number {
    return this.#queue.size;
  }

  /** Throws QueueRefusal if the queue is full and no other caller has more items in it. */
  enter(item: Item): void {
    if (this.size >= this.#limits.maxLength) this.#makeRoom(item);
    this.#queue.push(item.caller, item, item.priority);
    const own = this.#byCaller.get(item.caller) ?? new Map<Item, number>();
    this.#byCaller.set(item.caller, own);
    own.set(item, this.#clock.now() + this.#limits.maxWaitMs);
  }

  /** Removes and returns the next item that may go. */
  take(mayGo: (item: Item) => boolean): Item | undefined {
    const item = this.#queue.take(mayGo);
    if (item !== undefined) this.#forget(item);
    return item;
  }

  /** Removes an item. Returns false if it was not in the queue. */
  leave(item: Item): boolean {
    if (!this.#queue.remove(item.caller, item, item.priority)) return false;
    this.#forget(item);
    return true;
  }

  /** Removes an item because it has waited too long. */
  refuseLate(item: Item): void {
    const { maxWaitMs } = this.#limits;
    this.#refuse(item, 'deadline', `The request waited ${maxWaitMs} ms for its turn.`);
  }

  /** Refuses all items that have waited too long. */
  expire(): void {
    const now = this.#clock.now();
    for (const own of [...this.#byCaller.values()]) {
      for (const [item, deadlineMs] of [...own]) {
        // If the clock is set back, no item waits longer than the limit from now.
        const dueMs = Math.min(deadlineMs, now + this.#limits.maxWaitMs);
        if (dueMs <= now) this.refuseLate(item);
        else own.set(item, dueMs);
      }
    }
  }

  /** Removes and returns all items. */
  clear(): Item[] {
    const all = [...this.#byCaller.values()].flatMap((own) => [...own.keys()]);
    return all.filter((item) => this.leave(item));
  }

  #makeRoom({ caller, priority }: Item): void {
    const isBackground = priority === backgroundPriority;
    const background = isBackground ? undefined : this.#findBackground();
    const own = this.#byCaller.get(caller)?.size ?? 0;
    let largest = new Map<Item, number>();
    for (const items of this.#byCaller.values()) if (items.size > largest.size) largest = items;
    const message = `${this.size} requests are already waiting, which is the maximum.`;
    const newest = background ?? [...largest.keys()].at(-1);
    const isFair = background !== undefined || (!isBackground && largest.size > own + 1);
    if (newest === undefined || !isFair) {
      throw new QueueRefusal('full', message, this.#retryAfter.retryAfterMs(this.size));
    }
    this.#refuse(newest, 'full', message);
  }

  #findBackground(): Item | undefined {
    for (const items of this.#byCaller.values())
      for (const item of items.keys()) if (item.priority === backgroundPriority) return item;
    return undefined;
  }

  #refuse(item: Item, reason: RefusalReason, message: string): void {
    const retryAfterMs = this.#retryAfter.retryAfterMs(this.size);
    if (this.leave(item)) item.refuse(new QueueRefusal(reason, message, retryAfterMs));
  }

  #forget(item: Item): void {
    const own = this.#byCaller.get(item.caller);
    own?.delete(item);
    if (own?.size === 0) this.#byCaller.delete(item.caller);
  }
}
