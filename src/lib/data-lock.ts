// One server per data directory: two would fight over the same machines and files. The lock is a
// transaction that never ends on an empty SQLite file, so the kernel lets go of it however we die.

import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

export class DataLocked extends Error {
  readonly code = 'DATA_LOCKED';

  constructor(dataDir: string) {
    super(`Another Millrace already runs on ${dataDir}.`);
    this.name = 'DataLocked';
  }
}

export interface DataLock {
  release(): void;
}

const busy = 5;

export function lockData(dataDir: string): DataLock {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const file = join(dataDir, 'server.lock');
  // A server that was just told to stop may need a moment.
  const database = new DatabaseSync(file, { timeout: 1000 });
  try {
    chmodSync(file, 0o600);
    database.exec('begin exclusive');
  } catch (error) {
    database.close();
    throw (error as { errcode?: number }).errcode === busy ? new DataLocked(dataDir) : error;
  }
  return { release: () => database.close() };
}
