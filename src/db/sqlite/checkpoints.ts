// Moves SQLite's write-ahead log into the database file shortly after the start and within a minute of any write, so
// that `millrace.db` alone is close to complete. Each checkpoint runs in a short-lived thread that waits for the
// disk, so neither readers nor writers wait.

import { stat } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import type { FastifyBaseLogger } from 'fastify';
import { createThread } from '#lib/async/thread.ts';

export interface Checkpoints {
  start(): void;
  /** Resolves once no checkpoint is running. None starts afterwards. */
  close(): Promise<void>;
}

/** True if everything committed is in the database file; false if a reader still needs a part of the log. */
export type CheckpointResult = boolean | Error;

const afterStartMs = 3_000;
/** Seldom enough for an idle server, whose heartbeat alone writes a few times a minute. */
const everyMs = 60_000;

export function createCheckpoints(file: string, log: FastifyBaseLogger): Checkpoints {
  /** Time of the last write to the log before it was last moved completely. */
  let moved = 0;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let closed = false;

  async function checkpointIfWritten(): Promise<void> {
    const written = await lastWrite(`${file}-wal`);
    if (written !== moved && (await checkpointInThread(file))) moved = written;
  }

  function plan(ms: number): void {
    timer = setTimeout(async () => {
      running = checkpointIfWritten().catch((error) => {
        log.error({ err: error }, 'checkpoint failed, trying again in a minute');
      });
      await running;
      if (!closed) plan(everyMs);
    }, ms).unref();
  }

  return {
    start: () => plan(afterStartMs),
    async close() {
      closed = true;
      clearTimeout(timer);
      await running;
    },
  };
}

/** Returns 0 if there is no log or it is empty. */
async function lastWrite(log: string): Promise<number> {
  const { mtimeMs, size } = await stat(log).catch(() => ({ mtimeMs: 0, size: 0 }));
  return size === 0 ? 0 : mtimeMs;
}

async function checkpointInThread(file: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<CheckpointResult>();
  const thread = createThread<CheckpointResult>(
    {
      name: 'checkpoints',
      file: new URL('./checkpoint-worker.ts', import.meta.url),
      workerData: file,
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
    },
    { received: resolve, ended: resolve },
  );
  thread.send('checkpoint');
  const result = await promise;
  await thread.close();
  if (result instanceof Error) throw result;
  return result;
}

/**
 * Empties the log once every other connection of this process is closed. Waits at most one second for readers in
 * other processes; a backup that is still running then empties the log itself when it ends.
 */
export function emptyLog(file: string): void {
  const database = new DatabaseSync(file, { timeout: 1000 });
  try {
    database.exec('pragma wal_checkpoint(truncate)');
  } finally {
    database.close();
  }
}
