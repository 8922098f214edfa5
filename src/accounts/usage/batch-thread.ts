// Writes batches to SQLite in a thread of their own, which waits for the disk while answers go out here. It
// starts with the first batch, because until then its 10 MB are worth more, and what comes while it starts is
// written here. If it dies, the batch it had fails, and the next one starts it again.

import assert from 'node:assert';
import type { Worker } from 'node:worker_threads';
import type { UsageRequestRow } from '../../db/tables.ts';
import { startThread } from '../../lib/thread.ts';
import type { Batch } from './batch.ts';

/** What the thread says: that it is up, and then of each batch null when it is in the database. */
export type BatchAnswer = 'ready' | Error | null;

/** `meanwhile` takes batches as long as the thread is not up; without it they wait. */
export function createBatchThread(file: string, meanwhile: Batch | null = null): Batch {
  let worker: Worker | undefined;
  let isReady = false;
  let settle: ((answer: Error | null) => void) | undefined;

  function start(): Worker {
    const started = startThread(new URL('./batch-worker.ts', import.meta.url), {
      name: 'usage',
      workerData: file,
      resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4, stackSizeMb: 1 },
    });
    let cause: unknown;
    started.on('message', (answer: BatchAnswer) => {
      if (answer === 'ready') isReady = true;
      else settle?.(answer);
    });
    started.on('error', (error) => {
      cause = error;
    });
    started.on('exit', () => {
      worker = undefined;
      isReady = false;
      settle?.(new Error('the thread that writes usage has ended', { cause }));
    });
    started.unref();
    return started;
  }

  async function send(asked: Worker, rows: readonly UsageRequestRow[]): Promise<void> {
    assert(settle === undefined, 'two batches at once');
    // Only a batch under way keeps the process alive.
    asked.ref();
    await new Promise<void>((resolve, reject) => {
      settle = (answer) => {
        settle = undefined;
        asked.unref();
        if (answer === null) resolve();
        else reject(answer);
      };
      // As they are: V8 copies objects of one shape as quickly as anything they could be packed in.
      asked.postMessage(rows);
    });
  }

  return {
    prepare() {
      worker ??= start();
    },
    async write(rows) {
      if (rows.length === 0) return;
      worker ??= start();
      if (isReady || meanwhile === null) await send(worker, rows);
      else await meanwhile.write(rows);
    },
    async close() {
      await worker?.terminate();
    },
  };
}
