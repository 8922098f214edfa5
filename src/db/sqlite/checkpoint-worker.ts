// The thread that runs one checkpoint of SQLite's write-ahead log. The checkpoint is passive: it moves as much as it
// can without blocking readers or writers.

import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { CheckpointResult } from './checkpoints.ts';

const respond = (result: CheckpointResult) => parentPort?.postMessage(result);

function checkpoint(): boolean {
  const url = pathToFileURL(workerData as string);
  // A database that has vanished must not be created again, because it would have no tables.
  url.searchParams.set('mode', 'rw');
  const database = new DatabaseSync(url);
  try {
    const row = database.prepare('pragma wal_checkpoint(passive)').get();
    const { busy, log, checkpointed } = row as Record<'busy' | 'log' | 'checkpointed', number>;
    // `busy` is set while another connection runs a checkpoint.
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
