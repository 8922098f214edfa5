// Writes batches to SQLite in a thread, which waits for the disk while the main thread serves requests. It starts
// with the first batch, because it takes 10 MB. If it dies, its current batch fails and the next one restarts it.

import assert from 'node:assert';
import type { UsageRequestRow } from '#db/tables.ts';
import { createThread } from '#lib/async/thread.ts';
import type { UsageWriter } from './writer.ts';

/** The result of a batch: null if it is in the database. */
export type WriteResult = Error | null;

/** `fallback` writes batches while the thread starts. If it is null, they wait for the thread. */
export function createUsageWriterThread(
  file: string,
  fallback: UsageWriter | null = null,
): UsageWriter {
  let settle: ((result: WriteResult) => void) | undefined;
  const thread = createThread<WriteResult>(
    {
      name: 'usage',
      file: new URL('./writer-worker.ts', import.meta.url),
      workerData: file,
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
