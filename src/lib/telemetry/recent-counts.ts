// Counts events of the recent past in slots of time, so that memory does not grow with the load.

import type { Clock } from '#lib/clock.ts';

export class RecentCounts {
  readonly #clock: Clock;
  readonly #slotMs: number;
  /** The number of the slot of time that each entry counts. */
  readonly #times: Float64Array;
  readonly #counts: Uint32Array;

  constructor(clock: Clock, slotMs: number, slots: number) {
    this.#clock = clock;
    this.#slotMs = slotMs;
    this.#times = new Float64Array(slots);
    this.#counts = new Uint32Array(slots);
  }

  add(): void {
    const time = this.#now();
    const slot = time % this.#times.length;
    if (this.#times[slot] !== time) this.#counts[slot] = 0;
    this.#times[slot] = time;
    this.#counts[slot] = (this.#counts[slot] as number) + 1;
  }

  /** The number of events in the last slots; in all of them by default. */
  sum(slots = this.#times.length): number {
    const from = this.#now() - slots;
    return this.#counts.reduce(
      (sum, count, slot) => ((this.#times[slot] as number) > from ? sum + count : sum),
      0,
    );
  }

  #now(): number {
    return Math.floor(this.#clock.now() / this.#slotMs);
  }
}
