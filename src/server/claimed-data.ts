// The data directory as a server finds it at the start: there, its own, and with no restore half done.

import { finishRestore } from '#backup/pending-restore.ts';
import type { Config } from '#config/schema.ts';
import { makeDataDirectory } from '#db/data-directory.ts';
import { type DataLock, lockData } from '#lib/data-lock.ts';

/** Null if servers may share the directory: all state is in PostgreSQL, and no machine is here. Throws StartError. */
export function claimDataDirectory(config: Config, alone: boolean): DataLock | null {
  makeDataDirectory(config.data_dir);
  const owned = config.database.url === null || config.cloud.driver === 'sandbox';
  const lock = alone && owned ? lockData(config.data_dir) : null;
  finishRestore(config.data_dir);
  return lock;
}
