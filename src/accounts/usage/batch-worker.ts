// The thread that writes usage to SQLite, through a connection of its own. Its commits don't wait for the disk:
// they are safe from a killed process at once, and from a power cut a few seconds later, with the next commit
// of the main thread, which does wait, or with the next checkpoint.

import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { RawTx } from '../../db/raw.ts';
import type { UsageRequestRow } from '../../db/tables.ts';
import type { BatchAnswer } from './batch-thread.ts';
import { writeBatch } from './batch-write.ts';

const url = pathToFileURL(workerData as string);
// A database that has vanished is not made anew, without tables.
url.searchParams.set('mode', 'rw');
const database = new DatabaseSync(url, { timeout: 10_000 });
// Checkpoints, and their wait for the disk, come here after 4 MB; the main thread leaves them to us.
database.exec('pragma synchronous = normal; pragma wal_autocheckpoint = 1000');

const statements = new Map<string, StatementSync>();

function prepare(text: string): StatementSync {
  const statement = statements.get(text) ?? database.prepare(text);
  statements.set(text, statement);
  return statement;
}

const tx: RawTx = {
  isPostgres: false,
  async run<Row>(text: string, values: readonly unknown[]) {
    const statement = prepare(text);
    const given = values as SQLInputValue[];
    if (statement.columns().length > 0)
      return { rows: statement.all(...given) as Row[], changed: 0 };
    return { rows: [], changed: Number(statement.run(...given).changes) };
  },
};

async function write(rows: readonly UsageRequestRow[]): Promise<void> {
  database.exec('begin immediate');
  try {
    await writeBatch(tx, rows);
    database.exec('commit');
  } catch (error) {
    if (database.isTransaction) database.exec('rollback');
    throw error;
  }
}

const answer = (given: BatchAnswer) => parentPort?.postMessage(given);

parentPort?.on('message', (rows: readonly UsageRequestRow[]) => {
  write(rows).then(
    () => answer(null),
    (error) => answer(error),
  );
});
