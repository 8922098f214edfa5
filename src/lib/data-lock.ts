// One server per data directory: two would fight over the same machines and files. The lock is a
// transaction that never ends on an empty SQLite file, so the kernel lets go of it however we die.

import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StartError } from './start-error.ts';

export interface DataLock {
  release(): void;
}

const busy = 5;

/** The directory must exist. Throws StartError. */
export function lockData(dataDir: string): DataLock {
  const file = join(dataDir, 'server.lock');
  // A server that was just told to stop may need a moment.
  const database = new DatabaseSync(file, { timeout: 1000 });
  try {
    chmodSync(file, 0o600);
    database.exec('begin exclusive');
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode !== busy) throw error;
    throw new StartError(`Another Millrace already runs on ${dataDir}.`);
  }
  return { release: () => database.close() };
}
