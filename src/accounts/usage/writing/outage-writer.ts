// Writes usage to PostgreSQL, and to the spool while PostgreSQL does not take it. Rows leave the spool in the order in
// which they came, and new rows queue behind them, so that the last state of a request is written last. A row that is
// written twice, because a server died before it left the spool, is counted once: see write-batch.ts. A row that
// PostgreSQL refuses for what it contains is set aside, so that those behind it are written.

import type { FastifyBaseLogger } from 'fastify';
import { batchRows } from '#accounts/usage/recorder.ts';
import type { Spool, SpooledRow } from './spool.ts';
import type { UsageWriter } from './writer.ts';

export interface OutageWriter extends UsageWriter {
  /** Moves spooled rows to the database. Rejects if it does not take them. Concurrent calls share one run. */
  drain(): Promise<void>;
  /** Number of rows that PostgreSQL refused since the start. */
  refused(): number;
}

export function createOutageWriter(
  database: UsageWriter,
  spool: Spool,
  log: FastifyBaseLogger,
): OutageWriter {
  let draining: Promise<void> | undefined;

  let refused = 0;

  async function drain(): Promise<void> {
    let moved = 0;
    for (;;) {
      const spooled = spool.first(batchRows);
      if (spooled.length === 0) break;
      moved += await move(spooled);
    }
    if (moved > 0) log.info({ rows: moved }, 'usage that waited in the data directory is written');
  }

  /** Returns how many rows the database took. Halves a batch that it refuses until the row at fault stands alone. */
  async function move(spooled: readonly SpooledRow[]): Promise<number> {
    try {
      await database.write(spooled.map(({ row }) => row));
      spool.delete(spooled);
      return spooled.length;
    } catch (error) {
      const sqlState = findRowFault(error);
      const [first] = spooled;
      if (sqlState === undefined || first === undefined) throw error;
      if (spooled.length > 1) {
        const half = Math.ceil(spooled.length / 2);
        return (await move(spooled.slice(0, half))) + (await move(spooled.slice(half)));
      }
      spool.setAside(first, sqlState);
      refused++;
      // The error's details would quote the row.
      log.error(
        { id: first.row.id, sqlState },
        'PostgreSQL refuses a row of usage: it is set aside',
      );
      return 0;
    }
  }

  return {
    prepare: database.prepare,
    async write(rows) {
      if (rows.length === 0) return;
      if (spool.count() > 0) return spool.put(rows);
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
    refused: () => refused,
    async close() {
      await draining?.catch(() => {});
      await database.close();
      spool.close();
    },
  };
}

/**
 * The SQLSTATE of an error that is due to a row's values: a data exception (class 22) or a violated constraint (23).
 * Undefined for all others: the database is away, full, being repaired or of another version, and may take it later.
 */
function findRowFault(error: unknown): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^2[23][0-9A-Z]{3}$/.test(code) ? code : undefined;
}
