// Runs waiting pulls, a few at a time. Its state is in the database and on the disk at all times, so it may be
// killed at any moment.

import { statfs } from 'node:fs/promises';
import type { FastifyBaseLogger } from 'fastify';
import type { Database, WeightPullRow } from '#db/tables.ts';
import type { Bindings } from './bindings.ts';
import { defaultRetryRules, download, type RetryRules } from './download.ts';
import { diskFull, goneFromDisk, noSpace, PullError } from './errors.ts';
import type { Hub } from './hub.ts';
import type { PullRows } from './pull-rows.ts';
import type { Manifest, Store, Weights } from './store.ts';

export interface Runner {
  /** Starts waiting pulls, as far as the concurrency limit allows. */
  wake(): void;
  /** Bytes of a pull that runs here, more recent than its row. */
  bytesOf(id: string): number | undefined;
  /** Stops a pull that runs here. Resolves once it no longer touches its files. */
  abort(id: string): Promise<void>;
  /** Throws if the disk has no room for the weights in addition to what other pulls still have to fetch. */
  checkSpace(weights: Weights, others: readonly WeightPullRow[]): Promise<void>;
  isStopping(): boolean;
  /** Returns every running pull to the queue, for the next start. */
  stop(): Promise<void>;
}

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
  hub: Hub;
  store: Store;
  rows: PullRows;
  bindings: Bindings;
}

interface Job {
  readonly controller: AbortController;
  bytes: number;
  finished: Promise<void>;
}

export function createRunner(parts: RunnerParts, options: RunnerOptions): Runner {
  const { db, log, hub, store, rows, bindings } = parts;
  const { retry = defaultRetryRules, freeBytes = readFreeBytes, beatMs = 1_000 } = options;
  const jobs = new Map<string, Job>();
  let stopping = false;
  let waking: Promise<void> | undefined;
  let wokenAgain = false;
  /** Finds pulls that another process on this folder queued or left behind. */
  const timer = setInterval(wake, 2 * beatMs).unref();

  function wake(): void {
    if (waking !== undefined) {
      wokenAgain = true;
      return;
    }
    waking = startWaiting()
      .catch((error) => log.error({ err: error }, 'looking for pulls failed'))
      .finally(() => {
        waking = undefined;
        if (wokenAgain) wake();
      });
  }

  async function startWaiting(): Promise<void> {
    wokenAgain = false;
    while (!stopping && jobs.size < options.concurrency) {
      const row = await rows.claim();
      if (row === undefined) return;
      const job: Job = {
        controller: new AbortController(),
        bytes: row.bytes_done,
        finished: Promise.resolve(),
      };
      jobs.set(row.id, job);
      job.finished = run(row, job).finally(() => {
        jobs.delete(row.id);
        wake();
      });
    }
  }

  async function run(row: WeightPullRow, job: Job): Promise<void> {
    const beating = setInterval(() => beat(row.id, job), beatMs);
    try {
      await fetchAll(row, job);
      if (!(await rows.beat(row.id, row.bytes_total))) return;
      // Bound first, then marked as done, so that a client that reads "done" can use the model.
      if (row.model_id !== null) await bindings.bind(db, row.model_id, row.name);
      await bindings.refresh();
      await rows.leave(row.id, { state: 'done', bytesDone: row.bytes_total });
    } catch (error) {
      await giveUp(row, job, error).catch((failure) => {
        // The lease expires by itself, and then a process retries the pull.
        log.error({ err: failure, pull_id: row.id }, 'a pull could not be recorded');
      });
    } finally {
      clearInterval(beating);
    }
  }

  async function fetchAll(row: WeightPullRow, job: Job): Promise<void> {
    const { signal } = job.controller;
    const weights = await store.prepare(toManifest(row));
    // An older version of the weights may have been in use until now.
    await bindings.refresh();
    const others = (await rows.live(db)).filter(
      ({ id, state }) => id !== row.id && state === 'running',
    );
    await checkSpace(weights, others);
    let before = 0;
    for (const file of weights.files) {
      const progress = (bytes: number) => {
        job.bytes = before + bytes;
      };
      if (!file.isWhole) {
        await download(hub, { repo: row.repo, commit: row.commit_id }, file, {
          signal,
          retry,
          progress,
        });
      }
      before += file.size;
      progress(0);
    }
    signal.throwIfAborted();
    if (!(await store.inspect(toManifest(row))).isWhole) throw goneFromDisk(row.name);
  }

  async function giveUp(row: WeightPullRow, job: Job, error: unknown): Promise<void> {
    const bytesDone = job.bytes;
    if (stopping) {
      await rows.leave(row.id, { state: 'queued', bytesDone });
    } else if (!job.controller.signal.aborted) {
      if (!(error instanceof PullError))
        log.error({ err: error, pull_id: row.id }, 'a pull failed');
      await rows.leave(row.id, { state: 'failed', bytesDone, error: toSentence(error) });
    }
  }

  function beat(id: string, job: Job): void {
    rows.beat(id, job.bytes).then(
      (ours) => {
        // The pull was cancelled through another process, or taken over after this one was silent for too long.
        if (!ours) job.controller.abort();
      },
      (error) => log.warn({ err: error, pull_id: id }, 'a pull could not report its progress'),
    );
  }

  async function checkSpace(weights: Weights, others: readonly WeightPullRow[]): Promise<void> {
    const needed = weights.bytes - weights.bytesOnDisk;
    const promised = others.reduce((sum, one) => sum + one.bytes_total - one.bytes_done, 0);
    const free = Math.max(0, (await freeBytes(options.folder)) - promised);
    if (needed > 0 && needed + options.diskReserveBytes > free) {
      throw noSpace(needed, free, options.diskReserveBytes);
    }
  }

  return {
    wake,
    bytesOf: (id) => jobs.get(id)?.bytes,
    async abort(id) {
      const job = jobs.get(id);
      job?.controller.abort();
      await job?.finished;
    },
    checkSpace,
    isStopping: () => stopping,
    async stop() {
      stopping = true;
      clearInterval(timer);
      await waking;
      for (const { controller } of jobs.values()) controller.abort();
      await Promise.all([...jobs.values()].map(({ finished }) => finished));
      await hub.close();
    },
  };
}

export const toManifest = ({ repo, commit_id, files }: WeightPullRow): Manifest => ({
  repo,
  commit: commit_id,
  files: JSON.parse(files),
});

function toSentence(error: unknown): string {
  if (error instanceof PullError) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT') return diskFull().message;
  return `The files can't be written (${code ?? 'unknown'}). The server's log says more.`;
}

async function readFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
