// A task that looks for work, one run at a time. What comes up while it looks may be missed, so
// waking it then makes it run once more.

export class WakeableTask {
  readonly #run: () => Promise<void>;
  #running: Promise<void> | undefined;
  #isWokenAgain = false;

  /** `run` must not reject. */
  constructor(run: () => Promise<void>) {
    this.#run = run;
  }

  wake(): void {
    this.#isWokenAgain = this.#running !== undefined;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#isWokenAgain) this.wake();
    });
  }

  /** Resolves once the task no longer runs. */
  async ended(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }
}
