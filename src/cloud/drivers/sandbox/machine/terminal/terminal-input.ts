// What is typed into a pseudo-terminal whose program may not read. Node's own stream would retry a write in a busy loop
// until the program reads, and the whole server would stand still.

import { writeSync } from 'node:fs';

/** Time until the next attempt to write. It doubles with each attempt that writes nothing. */
const retryMs = { first: 1, last: 100 };

export class TerminalInput {
  readonly #descriptor: number;
  /** False once the descriptor is closed: another file may have its number. */
  readonly #isOpen: () => boolean;
  readonly #drained: (() => void)[] = [];
  #waiting: Buffer[] = [];
  #delayMs = retryMs.first;

  /** The descriptor must not block. */
  constructor(descriptor: number, isOpen: () => boolean) {
    this.#descriptor = descriptor;
    this.#isOpen = isOpen;
  }

  /** Returns false if the program has not read everything. Then wait for `onDrain`. */
  write(data: Buffer): boolean {
    const isWaiting = this.#waiting.length > 0;
    this.#waiting.push(data);
    // A retry is due that writes it too, in the right order.
    if (!isWaiting) this.#writeAll();
    return this.#waiting.length === 0;
  }

  onDrain(listener: () => void): void {
    this.#drained.push(listener);
  }

  #writeAll(): void {
    while (this.#waiting[0] !== undefined) {
      const rest = this.#writeSome(this.#waiting[0]);
      if (rest === null) {
        this.#retry();
        return;
      }
      if (rest.length > 0) this.#waiting[0] = rest;
      else this.#waiting.shift();
      this.#delayMs = retryMs.first;
    }
  }

  /** Returns what is left; null if the terminal takes nothing now. */
  #writeSome(data: Buffer): Buffer | null {
    if (!this.#isOpen()) return data.subarray(data.length);
    try {
      return data.subarray(writeSync(this.#descriptor, data));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return null;
      // The terminal has just ended.
      return data.subarray(data.length);
    }
  }

  #retry(): void {
    setTimeout(() => {
      this.#writeAll();
      if (this.#waiting.length === 0) for (const listener of this.#drained) listener();
    }, this.#delayMs).unref();
    this.#delayMs = Math.min(2 * this.#delayMs, retryMs.last);
  }
}
