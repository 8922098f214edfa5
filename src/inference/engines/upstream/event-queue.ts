// Events of a stream between the receiver that rewrites them and the reader that serves them. Everything that is ready is
// handed over as one block.

import type { Cancellation } from '#http/client-disconnect.ts';
import type { ResponseStream, TakeItem, WireEvents } from '#inference/engine.ts';

/** The side that fills the queue. */
export interface EventProducer {
  /** The reader took everything. */
  onDrain(): void;
  /** The reader left before the end. */
  onLeave(): void;
}

type Resolve = (result: IteratorResult<WireEvents>) => void;
type Reject = (error: unknown) => void;

export class EventQueue implements ResponseStream, AsyncIterableIterator<WireEvents> {
  readonly #signal: Cancellation;
  readonly #producer: EventProducer;
  #ready: WireEvents = '';
  /** `closed` once the reader knows how the stream ended. */
  #state: 'open' | 'ended' | 'failed' | 'closed' = 'open';
  #failure: unknown = null;
  #wake: (() => void) | null = null;

  constructor(signal: Cancellation, producer: EventProducer) {
    this.#signal = signal;
    this.#producer = producer;
  }

  /** Bytes that wait for the reader. */
  get length(): number {
    return this.#ready.length;
  }

  push(events: WireEvents): void {
    if (events === '' || this.#state !== 'open') return;
    this.#ready += events;
    this.#wakeReader();
  }

  /** The stream is complete. */
  end(): void {
    if (this.#state === 'open') this.#state = 'ended';
    this.#wakeReader();
  }

  /** The reader gets the error after the events that are ready. */
  fail(error: unknown): void {
    this.#failure = error;
    if (this.#state === 'open') this.#state = 'failed';
    this.#wakeReader();
  }

  /** Resolves when the first events are ready. Rejects if there will be none. */
  started(): Promise<this> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        const isSettled = this.#state !== 'open';
        if (this.#signal.aborted) reject(this.#close(this.#signal.reason));
        else if (this.#ready !== '') resolve(this);
        else if (isSettled) reject(this.#close(this.#failure));
        else this.#wake = wake;
      };
      wake();
    });
  }

  /** Serves readers that look at each block. Most streams are read by `forEach`. */
  next(): Promise<IteratorResult<WireEvents>> {
    return new Promise((resolve, reject) => {
      if (this.#deliver(resolve, reject)) return;
      this.#wake = () => {
        if (!this.#deliver(resolve, reject)) this.#wake = null;
      };
    });
  }

  forEach(take: TakeItem): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        try {
          while (this.#ready !== '' && !this.#signal.aborted) {
            const written = take(this.#take());
            if (written === undefined) continue;
            written.then(wake, reject);
            return;
          }
          const isDelivered = this.#deliver(() => resolve(), reject);
          if (!isDelivered) this.#wake = wake;
        } catch (error) {
          this.#leave();
          reject(error);
        }
      };
      wake();
    });
  }

  async return(): Promise<IteratorResult<WireEvents>> {
    this.#leave();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Settles a read. False if there is nothing to deliver yet. */
  #deliver(resolve: Resolve, reject: Reject): boolean {
    const { aborted, reason } = this.#signal;
    if (this.#state === 'closed') resolve({ value: undefined, done: true });
    // The tokens are counted before the reader learns of the end, because it reports them.
    else if (aborted && this.#state === 'open') return false;
    else if (aborted) reject(this.#close(reason));
    else if (this.#ready !== '') resolve({ value: this.#take(), done: false });
    else if (this.#state === 'failed') reject(this.#close(this.#failure));
    else if (this.#state === 'ended') resolve({ value: this.#close(undefined), done: true });
    else return false;
    return true;
  }

  #take(): WireEvents {
    const block = this.#ready;
    this.#ready = '';
    this.#producer.onDrain();
    return block;
  }

  #leave(): void {
    this.#close(null);
    this.#producer.onLeave();
  }

  #close<Result>(result: Result): Result {
    this.#state = 'closed';
    this.#ready = '';
    return result;
  }

  #wakeReader(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}
