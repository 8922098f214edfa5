// Ensures one server per data directory: two would fight over the same machines and files.

import { join } from 'node:path';
import { StartError } from '#lib/start-error.ts';
import { type FileLock, lockFile } from './file-lock.ts';

export type DataLock = FileLock;

/** A server that is stopping may need a moment. */
const waitMs = 1000;

/** The directory must exist. Throws StartError. */
export function lockData(dataDir: string): DataLock {
  const lock = lockFile(join(dataDir, 'server.lock'), waitMs);
  if (lock !== null) return lock;
  throw new StartError(
    `Another Millrace server is using ${dataDir}. Stop it, or choose another data directory.`,
  );
}
