// SQLite in a file of the data directory.

import { closeSync, openSync } from 'node:fs';
import { type Dialect, SqliteDialect } from 'kysely';
import { openSqlite } from './sqlite-connection.ts';

/**
 * Checkpoints wait for the disk, so the thread that writes usage makes them, long before this. Here they only
 * bound the log of a server that nobody asks anything: 16 MB.
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

/** For its owner alone. SQLite gives the files it makes beside it the same mode. */
function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
