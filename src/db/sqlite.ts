// SQLite in a file in the data directory.

import { closeSync, openSync } from 'node:fs';
import { type Dialect, SqliteDialect } from 'kysely';
import { openSqlite } from './sqlite-connection.ts';

/**
 * Checkpoints wait for the disk, so the thread that writes usage runs them long before this limit. Here they only
 * bound the log of a server that receives no requests: 16 MB.
 */
const checkpointPages = 4000;

export function createSqliteDialect(file: string): Dialect {
  return new SqliteDialect({
    async database() {
      createPrivately(file);
      return openSqlite(file, { synchronous: 'full', checkpointPages });
    },
  });
}

/** Creates the file for its owner alone. SQLite gives the same mode to the files it creates beside it. */
export function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
