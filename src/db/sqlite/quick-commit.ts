// Commits without a sync of the disk, as usage is written. Nothing is lost if the server is killed.
// A power cut may lose what was committed since the last sync, but never a part of a transaction.

import { PostgresAdapter, sql } from 'kysely';
import type { Database, Tx } from '#db/tables/tables.ts';

/**
 * On SQLite a commit takes 0.1 ms of the event loop instead of 7 ms (bench/stored.ts beside other
 * work). PostgreSQL syncs elsewhere.
 */
export function commitQuickly<Result>(
  db: Database,
  work: (tx: Tx) => Promise<Result>,
): Promise<Result> {
  if (db.getExecutor().adapter instanceof PostgresAdapter) return db.transaction().execute(work);
  return db.connection().execute(async (connection) => {
    await sql`pragma synchronous = normal`.execute(connection);
    try {
      return await connection.transaction().execute(work);
    } finally {
      await sql`pragma synchronous = full`.execute(connection);
    }
  });
}
