// Where requests' rows go, many at a time. This one writes through the connections everything else uses, which
// with PostgreSQL wait elsewhere; SQLite would hold up all answers, and has a thread (`batch-thread.ts`).

import { toRawTx } from '#db/raw.ts';
import type { Database, UsageRequestRow } from '#db/tables.ts';
import { writeBatch } from './write-batch.ts';

export interface Batch {
  /** Says that one will be written in a moment. */
  prepare(): void;
  /** All of them or none, in one transaction with their sums. May be repeated when it fails. One at a time. */
  write(rows: readonly UsageRequestRow[]): Promise<void>;
  /** When everything is written. */
  close(): Promise<void>;
}

export function createBatch(db: Database): Batch {
  return {
    prepare() {},
    async write(rows) {
      if (rows.length === 0) return;
      await db.transaction().execute((tx) => writeBatch(toRawTx(tx), rows));
    },
    close: async () => {},
  };
}
