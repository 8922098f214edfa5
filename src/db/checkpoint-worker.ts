// The thread that makes one checkpoint of SQLite's write-ahead log. A passive one: it moves what it can without
// making a reader or a writer wait.

import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { CheckpointResult } from './checkpoints.ts';

const respond = (result: CheckpointResult) => parentPort?.postMessage(result);

function checkpoint(): boolean {
  const url = pathToFileURL(workerData as string);
  // A database that has vanished is not made anew, without tables.
  url.searchParams.set('mode', 'rw');
  const database = new DatabaseSync(url);
  try {
    const row = database.prepare('pragma wal_checkpoint(passive)').get();
    const { busy, log, checkpointed } = row as Record<'busy' | 'log' | 'checkpointed', number>;
    // Busy when another connection makes a checkpoint right now.
    return busy === 0 && log === checkpointed;
  } finally {
    database.close();
  }
}

parentPort?.on('message', () => {
  try {
    respond(checkpoint());
  } catch (error) {
    respond(error as Error);
  }
});
