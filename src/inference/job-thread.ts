// A thread that does one job at a time. The others wait in a bounded queue that is fair between callers.
// The thread starts with the first job. If it dies, the job that ran fails, and the next one restarts it.

import type { Transferable } from 'node:worker_threads';
import {
  createWaitingLine,
  type Waiter,
  type WaitingLine,
} from '#inference/routing/waiting-requests.ts';
import { createThread, type Thread, type ThreadOptions } from '#lib/async/thread.ts';
import type { Clock } from '#lib/clock.ts';
import { type Call, EngineError } from './engine.ts';

export type JobCaller = Pick<Call, 'caller' | 'priority' | 'signal'>;

export interface JobLimits {
  /** Jobs that may wait. */
  length: number;
  /** A job that has waited longer is refused. */
  waitMs: number;
  /** Wall-clock limit of one job. The thread is ended at the limit, as nothing else stops a loop. */
  runMs: number;
}

/** The job was too much for the thread, so that another try is no use. */
export class JobTooLarge extends Error {
  readonly limit: 'time' | 'memory';

  constructor(limit: 'time' | 'memory') {
    super(`the job takes too much ${limit}`);
    this.limit = limit;
  }
}

/** Answers of earlier jobs. `get` is also asked when a job's turn comes, and `set` after each job. */
export interface JobCache<Question, Answer> {
  get(question: Question): Answer | undefined;
  set(question: Question, answer: Answer): void;
}

interface Job<Question, Answer> extends Waiter {
  readonly question: Question;
  readonly transfer: readonly Transferable[];
  isLate: boolean;
  settle(answer: Answer): void;
  refuse(error: unknown): void;
}

export class JobThread<Question, Answer> {
  readonly #limits: JobLimits;
  readonly #line: WaitingLine<Job<Question, Answer>>;
  readonly #thread: Thread;
  readonly #cache: JobCache<Question, Answer> | null;
  #running: Job<Question, Answer> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(
    clock: Clock,
    options: ThreadOptions,
    limits: JobLimits,
    cache: JobCache<Question, Answer> | null = null,
  ) {
    this.#limits = limits;
    this.#cache = cache;
    this.#line = createWaitingLine(limits, clock, () => {});
    this.#thread = createThread<Answer>(options, {
      received: (answer) => this.#answered(answer),
      ended: (error) => this.#ended(error),
    });
  }

  /**
   * Throws EngineError `overloaded` when too many jobs wait, JobTooLarge, or the signal's reason. A client
   * that leaves takes its job out of the queue; a job that runs is finished for the cache.
   */
  async run(
    question: Question,
    { caller, priority, signal }: JobCaller,
    transfer: readonly Transferable[] = [],
  ): Promise<Answer> {
    const known = this.#cache?.get(question);
    if (known !== undefined) return known;
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#isClosed) throw stopping();
      const leave = () => {
        this.#line.leave(job);
        job.refuse(signal.reason);
      };
      const job: Job<Question, Answer> = {
        question,
        transfer,
        caller,
        priority,
        deadlineMs: 0,
        isLate: false,
        settle(answer) {
          signal.removeEventListener('abort', leave);
          resolve(answer);
        },
        refuse(error) {
          signal.removeEventListener('abort', leave);
          reject(error);
        },
      };
      this.#line.enter(job);
      signal.addEventListener('abort', leave);
      this.#advance();
    });
  }

  /** Fails the jobs that wait or run, and every later one. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#line.clear(stopping());
    await this.#thread.close();
  }

  /** Takes jobs from the queue until one has to run. */
  #advance(): void {
    this.#line.expire();
    while (this.#running === null) {
      const job = this.#line.take(() => true);
      if (job === undefined) break;
      const known = this.#cache?.get(job.question);
      if (known === undefined) this.#start(job);
      else job.settle(known);
    }
    if (this.#running === null) this.#thread.release();
  }

  #start(job: Job<Question, Answer>): void {
    this.#running = job;
    this.#timer = setTimeout(() => {
      job.isLate = true;
      void this.#thread.close();
    }, this.#limits.runMs).unref();
    this.#thread.send(job.question, job.transfer);
  }

  #answered(answer: Answer): void {
    const job = this.#running;
    // A late job ends with the thread, so that the next one starts on a new thread.
    if (job === null || job.isLate) return;
    this.#cache?.set(job.question, answer);
    job.settle(answer);
    this.#release();
  }

  #ended(error: Error): void {
    const job = this.#running;
    if (job === null) return;
    job.refuse(this.#isClosed ? stopping() : toFailure(error, job.isLate));
    this.#release();
  }

  #release(): void {
    clearTimeout(this.#timer);
    this.#running = null;
    this.#line.moved();
    this.#advance();
  }
}

function toFailure(error: Error, isLate: boolean): Error {
  if (isLate) return new JobTooLarge('time');
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  return code === 'ERR_WORKER_OUT_OF_MEMORY' ? new JobTooLarge('memory') : error;
}

const stopping = () => new EngineError('unavailable', 'The server is stopping.');
