// Writes usage rows to the database, many at a time. This writer uses the main thread's connections. PostgreSQL
// waits for the disk in its own process; SQLite would block every response, so it has writer-thread.ts.

import { toRawTx } from '#db/raw.ts';
import type { Database, UsageRequestRow } from '#db/tables.ts';
import { writeBatch } from './write-batch.ts';

export interface UsageWriter {
  /** Announces that a batch will be written soon. */
  prepare(): void;
  /**
   * Writes all rows and their sums in one transaction, or nothing. A batch that failed may be written again.
   * Must not be called while another write runs.
   */
  write(rows: readonly UsageRequestRow[]): Promise<void>;
  /** Must not be called before the last write has ended. */
  close(): Promise<void>;
}

export function createUsageWriter(db: Database): UsageWriter {
  return {
    prepare() {},
    async write(rows) {
      if (rows.length === 0) return;
      await db.transaction().execute((tx) => writeBatch(toRawTx(tx), rows));
    },
    close: async () => {},
  };
}
