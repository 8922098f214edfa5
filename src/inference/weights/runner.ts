// Runs waiting pulls, a few at a time. Its state is in the database and on the disk at all times, so it may be
// killed at any moment.

import type { FastifyBaseLogger } from 'fastify';
import type { WeightPullRow } from '#db/tables/model-rows.ts';
import type { Database } from '#db/tables/tables.ts';
import { defaultRetryRules } from '#inference/weights/download/download.ts';
import type { Downloads } from '#inference/weights/download/download-thread.ts';
import { ClaimLoop } from '#lib/async/claim-loop.ts';
import { isDiskFullCode, readFreeBytes } from '#lib/computer/disk-space.ts';
import type { RetryRules } from '#lib/growing-file.ts';
import type { Bindings } from './bindings.ts';
import { diskFull, goneFromDisk, noSpace, PullError } from './errors.ts';
import { type PullRow, type PullRows, toManifest } from './pull-rows.ts';
import type { Store, Weights } from './store.ts';

export interface RunnerOptions {
  readonly folder: string;
  readonly concurrency: number;
  readonly diskReserveBytes: number;
  readonly beatMs?: number;
  readonly retry?: RetryRules;
  readonly freeBytes?: (folder: string) => Promise<number>;
}

export interface RunnerParts {
  db: Database;
  log: FastifyBaseLogger;
  downloads: Downloads;
  store: Store;
  rows: PullRows;
  bindings: Bindings;
}

interface Job {
  readonly controller: AbortController;
  bytes: number;
  /** Why this process stopped it; null if it was cancelled or runs. */
  failure: PullError | null;
}

export class Runner {
  readonly #parts: RunnerParts;
  readonly #options: RunnerOptions;
  readonly #loop: ClaimLoop<WeightPullRow, Job>;

  constructor(parts: RunnerParts, options: RunnerOptions) {
    this.#parts = parts;
    this.#options = options;
    const { beatMs = 1_000 } = options;
    this.#loop = new ClaimLoop({
      maxJobs: options.concurrency,
      // Finds pulls that another process on this folder queued or left behind.
      lookMs: 5 * beatMs,
      claim: () => parts.rows.claim(),
      idOf: ({ id }) => id,
      open: (row) => ({ controller: new AbortController(), bytes: row.bytes_done, failure: null }),
      run: (row, job) => this.#run(row, job),
      beat: {
        everyMs: beatMs,
        run: (row, job) => Promise.all([beat(parts, row.id, job), this.#stopAtReserve(row, job)]),
      },
      lookFailed: (error) => parts.log.error({ err: error }, 'looking for pulls failed'),
    });
    this.#loop.start();
  }

  get isStopping(): boolean {
    return this.#loop.isStopping;
  }

  /** Starts waiting pulls, as far as the concurrency limit allows. */
  wake(): void {
    this.#loop.wake();
  }

  /** Bytes of a pull that runs here, more recent than its row. */
  bytesOf(id: string): number | undefined {
    return this.#loop.jobs.get(id)?.bytes;
  }

  /** Stops a pull that runs here. Resolves once it no longer touches its files. */
  async abort(id: string): Promise<void> {
    this.#loop.jobs.get(id)?.controller.abort();
    await this.#loop.ended(id);
  }

  /** Throws if the disk has no room for the weights in addition to what other pulls still have to fetch. */
  async checkSpace(weights: Weights, others: readonly PullRow[]): Promise<void> {
    const { folder, diskReserveBytes, freeBytes = readFreeBytes } = this.#options;
    const needed = weights.bytes - weights.bytesOnDisk;
    const promised = others.reduce((sum, one) => sum + one.bytes_total - one.bytes_done, 0);
    const free = Math.max(0, (await freeBytes(folder)) - promised);
    if (needed > 0 && needed + diskReserveBytes > free) {
      throw noSpace(needed, free, diskReserveBytes);
    }
  }

  /** Returns every running pull to the queue, for the next start. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    for (const { controller } of this.#loop.jobs.values()) controller.abort();
    await this.#loop.finished();
    await this.#parts.downloads.close();
  }

  async #run(row: WeightPullRow, job: Job): Promise<void> {
    const { db, log, rows, bindings } = this.#parts;
    try {
      await this.#fetchAll(row, job);
      if (!(await rows.beat(row.id, row.bytes_total))) return;
      // Bound first, then marked as done, so that a client that reads "done" can use the model.
      if (row.model_id !== null) await bindings.bind(db, row.model_id, row.name);
      await bindings.refresh();
      await rows.leave(row.id, { state: 'done', bytesDone: row.bytes_total });
    } catch (error) {
      await this.#giveUp(row, job, error).catch((failure) => {
        // The lease expires by itself, and then a process retries the pull.
        log.error({ err: failure, pull_id: row.id }, 'a pull could not be recorded');
      });
    }
  }

  async #fetchAll(row: WeightPullRow, job: Job): Promise<void> {
    const { db, downloads, store, rows, bindings } = this.#parts;
    const { signal } = job.controller;
    const { retry = defaultRetryRules } = this.#options;
    const weights = await store.prepare(toManifest(row));
    // An older version of the weights may have been in use until now.
    await bindings.refresh();
    const others = (await rows.live(db)).filter(
      ({ id, state }) => id !== row.id && state === 'running',
    );
    await this.checkSpace(weights, others);
    const from = { repo: row.repo, commit: row.commit_id };
    const token = rows.tokenOf(row);
    let before = 0;
    for (const file of weights.files) {
      const progress = (bytes: number) => {
        job.bytes = before + bytes;
      };
      if (!file.isWhole) await downloads.run({ from, file, token, retry }, progress, signal);
      before += file.size;
      progress(0);
    }
    signal.throwIfAborted();
    if (!(await store.inspect(toManifest(row))).isWhole) throw goneFromDisk(row.name);
  }

  async #giveUp(row: PullRow, job: Job, error: unknown): Promise<void> {
    const { log, rows } = this.#parts;
    const bytesDone = job.bytes;
    if (this.isStopping) {
      await rows.leave(row.id, { state: 'queued', bytesDone });
    } else if (job.failure !== null || !job.controller.signal.aborted) {
      const reason = job.failure ?? error;
      if (!(reason instanceof PullError))
        log.error({ err: reason, pull_id: row.id }, 'a pull failed');
      await rows.leave(row.id, { state: 'failed', bytesDone, error: toSentence(reason) });
    }
  }

  /** Other files may grow while weights are pulled, so the reserve is checked again all the time. */
  async #stopAtReserve(row: PullRow, job: Job): Promise<void> {
    const { folder, diskReserveBytes, freeBytes = readFreeBytes } = this.#options;
    try {
      const free = await freeBytes(folder);
      if (free >= diskReserveBytes) return;
      job.failure = noSpace(row.bytes_total - job.bytes, free, diskReserveBytes);
      job.controller.abort();
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'free space unknown');
    }
  }
}

async function beat({ rows, log }: RunnerParts, id: string, job: Job): Promise<void> {
  try {
    // The pull was cancelled through another process, or taken over after this one was silent for too long.
    if (!(await rows.beat(id, job.bytes))) job.controller.abort();
  } catch (error) {
    log.warn({ err: error, pull_id: id }, 'a pull could not report its progress');
  }
}

function toSentence(error: unknown): string {
  if (error instanceof PullError) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  if (isDiskFullCode(code)) return diskFull().message;
  return `The files can't be written (${code ?? 'unknown'}). The server's log says more.`;
}
