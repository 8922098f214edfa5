// A task for keys that many callers ask for: it runs at once, and then at most once per interval for each key.

export class PacedTask {
  readonly #everyMs: number;
  readonly #run: (key: string) => void;
  /** Keys that it ran for within the interval, and whether it must run again at the end of it. */
  readonly #recent = new Map<string, { isDue: boolean }>();

  constructor(everyMs: number, run: (key: string) => void) {
    this.#everyMs = everyMs;
    this.#run = run;
  }

  wake(key: string): void {
    const recent = this.#recent.get(key);
    if (recent === undefined) this.#start(key);
    else recent.isDue = true;
  }

  #start(key: string): void {
    const recent = { isDue: false };
    this.#recent.set(key, recent);
    setTimeout(() => {
      this.#recent.delete(key);
      if (recent.isDue) this.#start(key);
    }, this.#everyMs).unref();
    this.#run(key);
  }
}
