// Works on rows of the database that this process claims, several at once. It looks for more when
// it is woken, when a job ends, and from time to time for those that other processes left. A job
// beats while it runs, which renews its lease.

import { WakeableTask } from './wakeable-task.ts';

export interface ClaimRules<Row, Job> {
  /** Maximum number of jobs that run at once. */
  readonly maxJobs: number;
  /** Time between two looks if nothing wakes the loop. */
  readonly lookMs: number;
  /** Runs before each look for rows. */
  prepare?(): Promise<void>;
  /** Claims a row. Undefined if none is free, or there is no room for its work. */
  claim(): Promise<Row | undefined>;
  idOf(row: Row): string;
  /** Creates what the outside knows of the work on a row, such as its signals. */
  open(row: Row): Job;
  /** Works on the row until it is done or its lease is lost. Must not reject. */
  run(row: Row, job: Job): Promise<void>;
  /** Renews the lease of a job every so often. Must not reject. Without it, leases are renewed elsewhere. */
  readonly beat?: { readonly everyMs: number; run(row: Row, job: Job): Promise<unknown> };
  /** Called with what `prepare` or `claim` threw. The next look tries again. */
  lookFailed(error: unknown): void;
}

export class ClaimLoop<Row, Job> {
  readonly #rules: ClaimRules<Row, Job>;
  readonly #jobs = new Map<string, { readonly job: Job; readonly finished: Promise<void> }>();
  readonly #looking: WakeableTask;
  #timer: NodeJS.Timeout | undefined;
  #isStopping = false;

  constructor(rules: ClaimRules<Row, Job>) {
    this.#rules = rules;
    this.#looking = new WakeableTask(() => this.#look().catch(rules.lookFailed));
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** The jobs that run, by the ids of their rows. */
  get jobs(): ReadonlyMap<string, Job> {
    return new Map([...this.#jobs].map(([id, { job }]) => [id, job]));
  }

  /** Looks from time to time from now on. */
  start(): void {
    this.#timer = setInterval(() => this.wake(), this.#rules.lookMs).unref();
  }

  /** Looks now. Does nothing before the start and once the loop stops. */
  wake(): void {
    if (this.#timer !== undefined && !this.#isStopping) this.#looking.wake();
  }

  /** Resolves once no job runs for this row. */
  async ended(id: string): Promise<void> {
    await this.#jobs.get(id)?.finished;
  }

  /** Claims no further row. Resolves once no claim is in flight; the jobs still run. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#timer);
    await this.#looking.ended();
  }

  /** After `stop`, resolves once no job runs. */
  async finished(): Promise<void> {
    await Promise.all([...this.#jobs.values()].map(({ finished }) => finished));
  }

  async #look(): Promise<void> {
    const { maxJobs, prepare, claim, idOf, open } = this.#rules;
    await prepare?.();
    while (!this.#isStopping && this.#jobs.size < maxJobs) {
      const row = await claim();
      if (row === undefined) return;
      const id = idOf(row);
      const job = open(row);
      const finished = this.#work(row, job).finally(() => {
        this.#jobs.delete(id);
        this.wake();
      });
      this.#jobs.set(id, { job, finished });
    }
  }

  async #work(row: Row, job: Job): Promise<void> {
    const { beat, run } = this.#rules;
    const beating = beat && setInterval(() => void beat.run(row, job), beat.everyMs);
    try {
      await run(row, job);
    } finally {
      clearInterval(beating);
    }
  }
}
