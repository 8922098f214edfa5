// Writes usage to PostgreSQL, and to the spool while PostgreSQL does not take it. Rows leave the spool in the order in
// which they came, and new rows queue behind them, so that the last state of a request is written last. A row that is
// written twice, because a server died before it left the spool, is counted once: see write-batch.ts.

import type { FastifyBaseLogger } from 'fastify';
import { batchRows } from './pending-rows.ts';
import type { Spool } from './spool.ts';
import type { UsageWriter } from './writer.ts';

export interface OutageWriter extends UsageWriter {
  /** Moves spooled rows to the database. Rejects if it does not take them. Concurrent calls share one run. */
  drain(): Promise<void>;
}

export function createOutageWriter(
  database: UsageWriter,
  spool: Spool,
  log: FastifyBaseLogger,
): OutageWriter {
  let draining: Promise<void> | undefined;

  async function drain(): Promise<void> {
    let moved = 0;
    for (;;) {
      const spooled = spool.first(batchRows);
      if (spooled.length === 0) break;
      await database.write(spooled.map(({ row }) => row));
      spool.delete(spooled);
      moved += spooled.length;
    }
    if (moved > 0) log.info({ rows: moved }, 'usage that waited in the data directory is written');
  }

  return {
    prepare: database.prepare,
    async write(rows) {
      if (rows.length === 0) return;
      if (spool.hasRows()) return spool.put(rows);
      try {
        await database.write(rows);
      } catch (error) {
        spool.put(rows);
        log.warn({ err: error }, 'usage waits in the data directory until the database takes it');
      }
    },
    drain() {
      draining ??= drain().finally(() => {
        draining = undefined;
      });
      return draining;
    },
    async close() {
      await draining?.catch(() => {});
      await database.close();
      spool.close();
    },
  };
}
