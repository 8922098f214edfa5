// The thread that writes usage to SQLite through its own connection. By default its commits don't wait for the disk:
// they survive a killed process at once, and a power cut a few seconds later, after the next commit of the main
// thread, which does wait, or the next checkpoint.

import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { RawTx } from '#db/raw.ts';
import { openSqlite } from '#db/sqlite/sqlite-connection.ts';
import type { UsageRequestRow } from '#db/tables/usage-rows.ts';
import { ready } from '#lib/async/thread.ts';
import { writeBatch } from './write-batch.ts';
import type { WorkerData, WriteResult } from './writer.ts';

const { file, synchronous } = workerData as WorkerData;
const url = pathToFileURL(file);
// A database that has vanished must not be created again, without tables.
url.searchParams.set('mode', 'rw');
// A checkpoint, which waits for the disk, follows every 4 MB.
const connection = openSqlite(url, { synchronous, checkpointPages: 1000 });

const tx: RawTx = {
  isPostgres: false,
  async run<Row>(text: string, values: readonly unknown[]) {
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
    // After some errors SQLite has rolled back by itself.
    if (connection.inTransaction()) execute('rollback');
    throw error;
  }
}

const respond = (result: WriteResult) => parentPort?.postMessage(result);

parentPort?.on('message', (rows: readonly UsageRequestRow[]) => {
  write(rows).then(
    () => respond(null),
    (error) => respond(error),
  );
});
parentPort?.postMessage(ready);
