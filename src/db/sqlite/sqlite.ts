// SQLite in a file in the data directory.

import { closeSync, openSync } from 'node:fs';
import { type Dialect, SqliteAdapter, SqliteDialect } from 'kysely';
import { openSqlite } from './sqlite-connection.ts';

/**
 * Checkpoints wait for the disk, so the thread that writes usage runs them long before this limit. Here they only
 * bound the log of a server that receives no requests: 16 MB.
 */
const checkpointPages = 4000;

export function createSqliteDialect(file: string): Dialect {
  const dialect = new SqliteDialect({
    async database() {
      createPrivately(file);
      return openSqlite(file, { synchronous: 'full', checkpointPages });
    },
  });
  dialect.createAdapter = () => new TransactionalAdapter();
  return dialect;
}

/** SQLite can change its schema in a transaction, which Kysely doesn't use. Without one, a crash splits a migration. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** Creates the file for its owner alone. SQLite gives the same mode to the files it creates beside it. */
export function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
