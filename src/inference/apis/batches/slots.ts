// The lines in flight on this server: at most a fixed number, each admitted only while its model has capacity that no
// other request waits for. Accounts take turns.

import type { Cancellation } from '#http/client-disconnect.ts';
import { FairQueue } from '#lib/async/fair-queue.ts';

interface WaitingLine {
  readonly model: string;
  start(): void;
}

/** Other requests free capacity without telling, so waiting lines are checked this often. */
const recheckMs = 100;

export class LineSlots {
  readonly #max: number;
  readonly #hasSpare: (model: string) => boolean;
  readonly #waiting = new FairQueue<WaitingLine>();
  #running = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `hasSpare` is true if a request for the model would be sent at once and keep no other waiting. */
  constructor(max: number, hasSpare: (model: string) => boolean) {
    this.#max = max;
    this.#hasSpare = hasSpare;
  }

  /** Rejects with the signal's reason when it aborts. Each line that starts must be released. */
  acquire(accountId: string, model: string, signal: Cancellation): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const line = { model, start: resolve };
    const abort = () => {
      if (this.#waiting.remove(accountId, line)) reject(signal.reason);
    };
    this.#waiting.push(accountId, line);
    signal.addEventListener('abort', abort);
    this.#timer ??= setInterval(() => this.#startWaiting(), recheckMs).unref();
    this.#startWaiting();
    return promise.finally(() => signal.removeEventListener('abort', abort));
  }

  release(): void {
    this.#running--;
    this.#startWaiting();
  }

  #startWaiting(): void {
    while (this.#running < this.#max) {
      const line = this.#waiting.take(({ model }) => this.#hasSpare(model));
      if (line === undefined) break;
      this.#running++;
      line.start();
    }
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
