// Writes usage rows to the database, many at a time: with the main thread's connections on PostgreSQL, which waits for
// the disk in its own process, and in a thread on SQLite, which would block every response.

import assert from 'node:assert';
import { toRawTx } from '#db/raw.ts';
import type { Database } from '#db/tables/tables.ts';
import type { UsageRequestRow } from '#db/tables/usage-rows.ts';
import { createThread } from '#lib/async/thread.ts';
import { writeBatch } from './write-batch.ts';

export interface UsageWriter {
  /** Announces that a batch will be written soon. */
  prepare(): void;
  /**
   * Writes all rows and their sums in one transaction, or nothing. A batch that failed may be written again.
   * Must not be called while another write runs.
   */
  write(rows: readonly UsageRequestRow[]): Promise<void>;
  /** Must not be called before the last write has ended. */
  close(): Promise<void>;
}

export function createUsageWriter(db: Database): UsageWriter {
  return {
    prepare() {},
    async write(rows) {
      if (rows.length === 0) return;
      await db.transaction().execute((tx) => writeBatch(toRawTx(tx), rows));
    },
    close: async () => {},
  };
}

export interface ThreadOptions {
  /** Writes batches while the thread starts. If it is null, they wait for the thread. */
  fallback?: UsageWriter | null;
  /** True if a commit must survive a power cut. */
  waitsForDisk?: boolean;
}

export interface WorkerData {
  readonly file: string;
  readonly synchronous: 'full' | 'normal';
}

/** The result of a batch: null if it is in the database. */
export type WriteResult = Error | null;

/**
 * The thread starts with the first batch, because it takes 10 MB. If it dies, its current batch fails and the next one
 * restarts it.
 */
export function createUsageWriterThread(
  file: string,
  { fallback = null, waitsForDisk = false }: ThreadOptions = {},
): UsageWriter {
  let settle: ((result: WriteResult) => void) | undefined;
  const thread = createThread<WriteResult>(
    {
      name: 'usage',
      file: new URL('./writer-worker.ts', import.meta.url),
      workerData: { file, synchronous: waitsForDisk ? 'full' : 'normal' } satisfies WorkerData,
      resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4, stackSizeMb: 1 },
    },
    { received: (result) => settle?.(result), ended: (error) => settle?.(error) },
  );

  async function send(rows: readonly UsageRequestRow[]): Promise<void> {
    assert(settle === undefined, 'two batches at once');
    await new Promise<void>((resolve, reject) => {
      settle = (result) => {
        settle = undefined;
        thread.release();
        if (result === null) resolve();
        else reject(result);
      };
      thread.send(rows);
    });
  }

  return {
    prepare: thread.start,
    async write(rows) {
      if (rows.length === 0) return;
      thread.start();
      if (thread.isReady() || fallback === null) await send(rows);
      else await fallback.write(rows);
    },
    close: thread.close,
  };
}
