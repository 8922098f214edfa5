// Runs batches, several at a time. Their state is in the database at all times, so this process may be killed at any
// moment, and another one goes on with its batches when their leases have expired.

import type { FastifyBaseLogger } from 'fastify';
import type { BatchRow } from '#db/tables/batch-rows.ts';
import { findEndpoint, type ListedEndpoint } from '#inference/apis/apis.ts';
import { ClaimLoop } from '#lib/async/claim-loop.ts';
import { callerGone } from './line-faults.ts';
import { type RunParts, runLines } from './run-lines.ts';
import { type LineBounds, validateLines } from './validate.ts';

export interface RunnerParts extends RunParts {
  readonly log: FastifyBaseLogger;
  readonly bounds: LineBounds;
}

interface Job {
  readonly accountId: string;
  readonly stop: AbortController;
  readonly pause: AbortController;
  readonly expire: AbortController;
}

const maxBatches = 8;
/** Batches of one account that this server runs at once, so that one account does not keep others waiting. */
const maxAccountBatches = 2;
const beatMs = 1_000;
/** How often to look for batches that other servers left; this server wakes its own runner. */
const lookMs = 5_000;
/** The lease must outlive several missed renewals. */
export const leaseMs = 6_000;

export class BatchRunner {
  readonly #parts: RunnerParts;
  readonly #loop: ClaimLoop<BatchRow, Job>;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
    this.#loop = new ClaimLoop({
      maxJobs: maxBatches,
      lookMs,
      claim: () => this.#claim(),
      idOf: ({ id }) => id,
      open: toJob,
      run: (row, job) => this.#run(row, job),
      beat: { everyMs: beatMs, run: ({ id }, job) => this.#tryToBeat(id, job) },
      lookFailed: (error) => parts.log.error({ err: error }, 'looking for batches failed'),
    });
  }

  start(): void {
    if (this.#parts.concurrency === 0) return;
    this.#loop.start();
    this.#loop.wake();
  }

  /** Looks for batches to run. */
  wake(): void {
    this.#loop.wake();
  }

  /** Starts no further line. Lines in flight may finish until `graceMs` have passed. Then all leases are given back. */
  async stop(graceMs: number): Promise<void> {
    await this.#loop.stop();
    const jobs = [...this.#loop.jobs.values()];
    for (const { pause } of jobs) pause.abort();
    const cut = setTimeout(() => {
      for (const { stop } of jobs) stop.abort();
    }, graceMs);
    await this.#loop.finished();
    clearTimeout(cut);
  }

  async #claim(): Promise<BatchRow | undefined> {
    const { files, rows } = this.#parts;
    const { freeBytes, diskReserveBytes } = files.limits;
    // Results that can't be stored would be generated again and again.
    if (freeBytes !== null && (await freeBytes()) < diskReserveBytes) return undefined;
    const { jobs } = this.#loop;
    return rows.claim({ ids: [...jobs.keys()], accounts: findBusy([...jobs.values()]) });
  }

  async #run({ id }: BatchRow, job: Job): Promise<void> {
    const { rows, log } = this.#parts;
    try {
      for (let isLive = true; isLive && !job.pause.signal.aborted; )
        isLive = await this.#step(id, job);
    } catch (error) {
      if (!job.stop.signal.aborted)
        log.error({ err: error, batch_id: id }, 'a batch was interrupted');
    } finally {
      job.stop.abort();
      await rows
        .release(id)
        .catch((error) => log.warn({ err: error, batch_id: id }, 'a batch was not released'));
    }
  }

  /** Moves the batch to its next state. Returns false once there is none. */
  async #step(id: string, job: Job): Promise<boolean> {
    const { rows, files } = this.#parts;
    const row = await this.#beat(id, job);
    if (row === undefined) return false;
    const endpoint = findEndpoint(row.endpoint);
    if (row.state === 'cancelling') await rows.end(row, 'cancelled');
    else if (endpoint === undefined) throw new Error(`there is no endpoint ${row.endpoint}`);
    else if (row.state === 'validating') {
      const from = { endpoint, accountId: row.account_id };
      const content = files.read(row.input_file_id);
      const { total, errors } = await validateLines(this.#parts, content, from, job.stop.signal);
      if (errors.length > 0) await rows.fail(id, total, errors);
      else await rows.begin(row, total);
    } else if (await this.#runLines(row, endpoint, job)) {
      if (row.state === 'in_progress' && !job.expire.signal.aborted) await rows.finalize(id, false);
      const ended = await rows.renew(id);
      if (ended?.state === 'finalizing') {
        await rows.end(ended, ended.expired_at === null ? 'completed' : 'expired');
      }
    }
    return true;
  }

  #runLines(
    batch: BatchRow,
    endpoint: ListedEndpoint,
    { stop, pause, expire }: Job,
  ): Promise<boolean> {
    if (batch.expired_at !== null) expire.abort();
    return runLines(this.#parts, {
      batch,
      endpoint,
      stop: stop.signal,
      pause: pause.signal,
      expire: expire.signal,
    });
  }

  #tryToBeat(id: string, job: Job): Promise<unknown> {
    return this.#beat(id, job).catch((error) =>
      this.#parts.log.warn({ err: error, batch_id: id }, 'the lease of a batch was not renewed'),
    );
  }

  /** Renews the lease, and notices what has happened to the batch meanwhile. */
  async #beat(id: string, job: Job): Promise<BatchRow | undefined> {
    const { rows, clock } = this.#parts;
    const row = (await rows.revoke(id, [{ ...callerGone, line: null }])) ?? (await rows.renew(id));
    if (row === undefined) {
      job.stop.abort();
      return undefined;
    }
    if (row.state === 'in_progress' && clock.now() >= row.expires_at) {
      const expired = await rows.finalize(id, true);
      if (expired !== undefined) job.expire.abort();
      return expired ?? row;
    }
    // Ends the lines that run. The next step ends the batch.
    if (row.state === 'cancelling') job.stop.abort();
    return row;
  }
}

const toJob = ({ account_id: accountId }: BatchRow): Job => ({
  accountId,
  stop: new AbortController(),
  pause: new AbortController(),
  expire: new AbortController(),
});

/** The accounts of which this server runs as many batches as it may. */
function findBusy(jobs: readonly Job[]): string[] {
  const byAccount = Map.groupBy(jobs, ({ accountId }) => accountId);
  return [...byAccount].filter(([, own]) => own.length >= maxAccountBatches).map(([id]) => id);
}
