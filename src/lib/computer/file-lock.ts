// A lock between the processes of this computer: an open transaction on an empty SQLite file, which the kernel releases
// however the process dies.

import { chmodSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

export interface FileLock {
  release(): void;
}

const busy = 5;

/** Blocks this thread while it waits. Null if another process has held the lock for `waitMs`. The folder must exist. */
export function lockFile(file: string, waitMs: number): FileLock | null {
  const database = new DatabaseSync(file, { timeout: waitMs });
  try {
    chmodSync(file, 0o600);
    database.exec('begin exclusive');
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode !== busy) throw error;
    return null;
  }
  return { release: () => database.close() };
}
