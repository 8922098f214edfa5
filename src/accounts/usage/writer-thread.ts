// Writes batches to SQLite in a thread of their own, which waits for the disk while answers go out here. It
// starts with the first batch, because until then its 10 MB are worth more, and what comes while it starts is
// written here. If it dies, the batch it had fails, and the next one starts it again.

import assert from 'node:assert';
import type { UsageRequestRow } from '#db/tables.ts';
import { createThread } from '#lib/async/thread.ts';
import { packRows } from './packed-rows.ts';
import type { Batch } from './writer.ts';

/** Of each batch: null when it is in the database. */
export type BatchAnswer = Error | null;

/** `meanwhile` takes batches as long as the thread is not up; without it they wait. */
export function createBatchThread(file: string, meanwhile: Batch | null = null): Batch {
  let settle: ((answer: BatchAnswer) => void) | undefined;
  const thread = createThread<BatchAnswer>(
    {
      name: 'usage',
      file: new URL('./writer-worker.ts', import.meta.url),
      workerData: file,
      resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4, stackSizeMb: 1 },
    },
    { received: (answer) => settle?.(answer), ended: (error) => settle?.(error) },
  );

  async function send(rows: readonly UsageRequestRow[]): Promise<void> {
    assert(settle === undefined, 'two batches at once');
    await new Promise<void>((resolve, reject) => {
      settle = (answer) => {
        settle = undefined;
        thread.release();
        if (answer === null) resolve();
        else reject(answer);
      };
      thread.send(packRows(rows));
    });
  }

  return {
    prepare: thread.start,
    async write(rows) {
      if (rows.length === 0) return;
      thread.start();
      if (thread.isReady() || meanwhile === null) await send(rows);
      else await meanwhile.write(rows);
    },
    close: thread.close,
  };
}
