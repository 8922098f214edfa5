// Prepares the data directory for a server: creates it, locks it, and completes an interrupted restore.

import { finishRestore } from '#backup/pending-restore.ts';
import type { Config } from '#config/schema.ts';
import { makeDataDirectory } from '#db/data-directory.ts';
import { type DataLock, lockData } from '#lib/computer/data-lock.ts';

/**
 * Returns null if servers may share the directory, which is so when all state is in PostgreSQL and this host
 * runs no machines. Throws StartError.
 */
export function claimDataDirectory(config: Config, ownsDataDir: boolean): DataLock | null {
  makeDataDirectory(config.data_dir);
  const isExclusive = config.database.url === null || config.cloud.driver === 'sandbox';
  const lock = ownsDataDir && isExclusive ? lockData(config.data_dir) : null;
  finishRestore(config.data_dir);
  return lock;
}
