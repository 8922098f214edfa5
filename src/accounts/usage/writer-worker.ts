// The thread that writes usage to SQLite, through a connection of its own. Its commits don't wait for the disk:
// they are safe from a killed process at once, and from a power cut a few seconds later, with the next commit
// of the main thread, which does wait, or with the next checkpoint.

import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { RawTx } from '#db/raw.ts';
import { openSqlite } from '#db/sqlite-connection.ts';
import type { UsageRequestRow } from '#db/tables.ts';
import { ready } from '#lib/async/thread.ts';
import { type PackedRows, unpackRows } from './packed-rows.ts';
import { writeBatch } from './write-batch.ts';
import type { BatchAnswer } from './writer-thread.ts';

const url = pathToFileURL(workerData as string);
// A database that has vanished is not made anew, without tables.
url.searchParams.set('mode', 'rw');
// Checkpoints, and their wait for the disk, come after 4 MB.
const connection = openSqlite(url, { synchronous: 'normal', checkpointPages: 1000 });

const tx: RawTx = {
  isPostgres: false,
  run<Row>(text: string, values: readonly unknown[]) {
    const statement = connection.prepare(text);
    if (statement.reader) return { rows: statement.all(values) as Row[], changed: 0 };
    return { rows: [], changed: Number(statement.run(values).changes) };
  },
};

async function write(rows: readonly UsageRequestRow[]): Promise<void> {
  const execute = (text: string) => connection.prepare(text).run([]);
  execute('begin');
  try {
    await writeBatch(tx, rows);
    execute('commit');
  } catch (error) {
    // After some errors SQLite has done so itself.
    if (connection.inTransaction()) execute('rollback');
    throw error;
  }
}

const answer = (given: BatchAnswer) => parentPort?.postMessage(given);

parentPort?.on('message', (packed: PackedRows) => {
  write(unpackRows(packed)).then(
    () => answer(null),
    (error) => answer(error),
  );
});
parentPort?.postMessage(ready);
