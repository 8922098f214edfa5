// Ensures one server per data directory: two would fight over the same machines and files. The lock is an open
// transaction on an empty SQLite file, which the kernel releases however the process dies.

import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StartError } from '#lib/start-error.ts';

export interface DataLock {
  release(): void;
}

const busy = 5;

/** The directory must exist. Throws StartError. */
export function lockData(dataDir: string): DataLock {
  const file = join(dataDir, 'server.lock');
  // A server that is stopping may need a moment.
  const database = new DatabaseSync(file, { timeout: 1000 });
  try {
    chmodSync(file, 0o600);
    database.exec('begin exclusive');
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode !== busy) throw error;
    throw new StartError(
      `Another Millrace server is using ${dataDir}. Stop it, or choose another data directory.`,
    );
  }
  return { release: () => database.close() };
}
