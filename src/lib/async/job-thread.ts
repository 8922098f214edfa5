// A thread that does one job at a time. The others wait in a bounded queue that is fair between callers.
// The thread starts with the first job. If it dies, the job that ran fails, and the next one restarts it.

import type { Transferable } from 'node:worker_threads';
import type { Clock } from '#lib/clock.ts';
import { BoundedFairQueue, type QueueItem, type QueueLimits } from './bounded-fair-queue.ts';
import { createRetryAfterEstimator, type RetryAfterEstimator } from './retry-after.ts';
import { createThread, type Thread, type ThreadOptions } from './thread.ts';

export interface JobCaller {
  readonly caller: string;
  /** Lower goes first. */
  readonly priority: number;
  readonly signal: {
    readonly reason: unknown;
    throwIfAborted(): void;
    addEventListener(type: 'abort', listener: () => void): void;
    removeEventListener(type: 'abort', listener: () => void): void;
  };
}

export interface JobLimits extends QueueLimits {
  /** Wall-clock limit of one job. The thread is ended at the limit, because nothing else stops a loop. */
  readonly maxRunMs: number;
}

/** The job exceeds a limit of the thread, so there is no use in another attempt. */
export class JobTooLarge extends Error {
  readonly limit: 'time' | 'memory';

  constructor(limit: 'time' | 'memory') {
    super(`the job takes too much ${limit}`);
    this.limit = limit;
  }
}

/** The thread was closed before the job was done. */
export class JobThreadClosed extends Error {
  constructor() {
    super('the thread was closed');
  }
}

/** Results of earlier jobs. `get` is called before a job is queued and before it runs, `set` after each job. */
export interface JobCache<Question, Answer> {
  get(question: Question): Answer | undefined;
  set(question: Question, answer: Answer): void;
}

export interface JobHooks<Question, Answer, Message> {
  readonly cache?: JobCache<Question, Answer>;
  /** Turns the thread's message into the answer. The next job starts once it has resolved; it must not reject. */
  readonly receive?: (message: Message) => Promise<Answer>;
}

interface Job<Question, Answer> extends QueueItem {
  readonly question: Question;
  readonly transfer: readonly Transferable[];
  isLate: boolean;
  /** Its message has arrived, so the end of the thread no longer concerns it. */
  isReceived: boolean;
  settle(answer: Answer): void;
  refuse(error: unknown): void;
}

export class JobThread<Question, Answer, Message = Answer> {
  readonly #limits: JobLimits;
  readonly #queue: BoundedFairQueue<Job<Question, Answer>>;
  readonly #retryAfter: RetryAfterEstimator;
  readonly #thread: Thread;
  readonly #cache: JobCache<Question, Answer> | undefined;
  #running: Job<Question, Answer> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(
    clock: Clock,
    options: ThreadOptions,
    limits: JobLimits,
    { cache, receive }: JobHooks<Question, Answer, Message> = {},
  ) {
    this.#limits = limits;
    this.#cache = cache;
    this.#retryAfter = createRetryAfterEstimator(clock);
    this.#queue = new BoundedFairQueue(limits, clock, this.#retryAfter);
    this.#thread = createThread<Message>(options, {
      received: (message) => void this.#received(message, receive),
      ended: (error) => this.#ended(error),
    });
  }

  /**
   * Throws QueueRefusal if too many jobs wait or this one waits too long, JobTooLarge, JobThreadClosed, or the
   * signal's reason. An aborted job is taken out of the queue; one that runs is finished for the cache.
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
      if (this.#isClosed) throw new JobThreadClosed();
      const leave = () => {
        this.#queue.leave(job);
        job.refuse(signal.reason);
      };
      const job: Job<Question, Answer> = {
        question,
        transfer,
        caller,
        priority,
        isLate: false,
        isReceived: false,
        settle(answer) {
          signal.removeEventListener('abort', leave);
          resolve(answer);
        },
        refuse(error) {
          signal.removeEventListener('abort', leave);
          reject(error);
        },
      };
      if (this.#queue.size === 0) this.#retryAfter.start();
      this.#queue.enter(job);
      signal.addEventListener('abort', leave);
      this.#advance();
    });
  }

  /** Fails the jobs that wait or run, and every later one. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const job of this.#queue.clear()) job.refuse(new JobThreadClosed());
    await this.#thread.close();
  }

  /** Takes jobs from the queue until one has to run. */
  #advance(): void {
    this.#queue.expire();
    while (this.#running === null) {
      const job = this.#queue.take(() => true);
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
    }, this.#limits.maxRunMs).unref();
    this.#thread.send(job.question, job.transfer);
  }

  async #received(message: Message, receive = toAnswer<Answer, Message>): Promise<void> {
    const job = this.#running;
    // A late job ends with the thread, so that the next one starts on a new thread.
    if (job === null || job.isLate) return;
    clearTimeout(this.#timer);
    job.isReceived = true;
    const answer = await receive(message);
    this.#cache?.set(job.question, answer);
    job.settle(answer);
    this.#release();
  }

  #ended(error: Error): void {
    const job = this.#running;
    if (job === null || job.isReceived) return;
    clearTimeout(this.#timer);
    job.refuse(this.#isClosed ? new JobThreadClosed() : toFailure(error, job.isLate));
    this.#release();
  }

  #release(): void {
    this.#running = null;
    if (this.#queue.size > 0) this.#retryAfter.departed();
    this.#advance();
  }
}

/** Without a hook, the message is the answer. */
const toAnswer = async <Answer, Message>(message: Message) => message as unknown as Answer;

function toFailure(error: Error, isLate: boolean): Error {
  if (isLate) return new JobTooLarge('time');
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  return code === 'ERR_WORKER_OUT_OF_MEMORY' ? new JobTooLarge('memory') : error;
}
