// Bounds the bytes of large request bodies, or of what requests name, that this server holds at once: in total and per
// caller. What must wait for room is not read meanwhile, so its bytes stay with the client or host.

import { FairQueue } from '#lib/async/fair-queue.ts';
import { overloaded, rateLimited } from '#lib/errors.ts';
import { KeyCounts } from '#lib/memory/key-counts.ts';

export interface RoomBounds {
  readonly maxBytes: number;
  /** Bytes that one caller may hold; at least the size of the largest body. */
  readonly maxCallerBytes: number;
  readonly maxWaiting: number;
  readonly maxCallerWaiting: number;
  readonly waitMs: number;
}

export interface Lease {
  /** Gives back room of a body that turned out to be smaller. */
  shrink(bytes: number): void;
  /** Gives the room back. Idempotent. */
  leave(): void;
}

interface Waiter {
  readonly caller: string;
  readonly bytes: number;
  readonly enter: () => void;
}

const retryMs = 1000;

export class BodyRoom {
  readonly #bounds: RoomBounds;
  readonly #what: string;
  readonly #queue = new FairQueue<Waiter>();
  /** Bytes held, by caller. */
  readonly #held = new KeyCounts();
  /** Bodies that wait, by caller. */
  readonly #waiting = new KeyCounts();
  #total = 0;

  /** `what` names the things in errors. */
  constructor(bounds: RoomBounds, what = 'large request bodies') {
    this.#bounds = bounds;
    this.#what = what;
  }

  /** Bytes held at the moment. */
  get bytes(): number {
    return this.#total;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /**
   * Waits for room. Rejects with a Refusal if too many bodies wait or the wait takes too long, and with the
   * signal's reason if it aborts.
   */
  async enter(caller: string, bytes: number, signal: AbortSignal): Promise<Lease> {
    signal.throwIfAborted();
    if (!this.#fits(caller, bytes)) await this.#wait(caller, bytes, signal);
    else this.#take(caller, bytes);
    return this.#toLease(caller, bytes);
  }

  #fits(caller: string, bytes: number): boolean {
    const { maxBytes, maxCallerBytes } = this.#bounds;
    return this.#total + bytes <= maxBytes && this.#held.get(caller) + bytes <= maxCallerBytes;
  }

  #take(caller: string, bytes: number): void {
    this.#total += bytes;
    this.#held.add(caller, bytes);
  }

  #wait(caller: string, bytes: number, signal: AbortSignal): Promise<void> {
    const { maxWaiting, maxCallerWaiting, waitMs } = this.#bounds;
    if (this.#waiting.get(caller) >= maxCallerWaiting) throw tooManyOfCaller(this.#what);
    if (this.#queue.size >= maxWaiting) throw tooMany(this.#what);
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        this.#waiting.remove(caller);
      };
      const enter = () => {
        end();
        resolve();
      };
      const waiter = { caller, bytes, enter };
      const giveUp = (reason: unknown) => {
        if (!this.#queue.remove(caller, waiter)) return;
        end();
        reject(reason);
      };
      const abort = () => giveUp(signal.reason);
      const timer = setTimeout(() => giveUp(tooMany(this.#what)), waitMs);
      signal.addEventListener('abort', abort);
      this.#waiting.add(caller);
      this.#queue.push(caller, waiter);
    });
  }

  #toLease(caller: string, taken: number): Lease {
    let bytes = taken;
    const shrink = (to: number) => {
      if (to >= bytes) return;
      this.#total -= bytes - to;
      this.#held.remove(caller, bytes - to);
      bytes = to;
      this.#admitWaiting();
    };
    return { shrink, leave: () => shrink(0) };
  }

  #admitWaiting(): void {
    const mayGo = ({ caller, bytes }: Waiter) => this.#fits(caller, bytes);
    for (let next = this.#queue.take(mayGo); next !== undefined; next = this.#queue.take(mayGo)) {
      this.#take(next.caller, next.bytes);
      next.enter();
    }
  }
}

const tooMany = (what: string) =>
  overloaded(
    `The server is busy reading other ${what}. Try again after the time in retry-after.`,
    retryMs,
  );

const tooManyOfCaller = (what: string) =>
  rateLimited(
    `Too many of your ${what} are waiting to be read. Try again after the time in retry-after.`,
    retryMs,
  );
