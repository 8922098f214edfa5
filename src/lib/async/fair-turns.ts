// Divides the time of this process among callers that have work in small steps. At most a few milliseconds of each
// turn of the event loop go to such steps; whatever else the process does comes in between.

import { FairQueue } from './fair-queue.ts';

const turnMs = 5;

export class FairTurns {
  readonly #steps = new FairQueue<() => void>();
  #isScheduled = false;

  /** Runs the step soon. Callers take turns, so one with many steps doesn't delay the others. */
  add(caller: string, step: () => void): void {
    this.#steps.push(caller, step);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#run());
  }

  #run(): void {
    this.#isScheduled = false;
    const endsAt = performance.now() + turnMs;
    do this.#steps.take(() => true)?.();
    while (this.#steps.size > 0 && performance.now() < endsAt);
    if (this.#steps.size > 0) this.#schedule();
  }
}
