// For writes that come many times a second: SQLite need not wait for the disk at their end. They are safe from
// a killed process at once, and from a power cut a few seconds later, with the next write that does wait.
// PostgreSQL waits for its disk in a process of its own.

import { type Kysely, SqliteAdapter, sql } from 'kysely';
import type { Database, Tables } from './tables.ts';

export async function withoutSync<Result>(
  db: Database,
  write: (db: Kysely<Tables>) => Promise<Result>,
): Promise<Result> {
  if (!(db.getExecutor().adapter instanceof SqliteAdapter)) return write(db);
  return db.connection().execute(async (one) => {
    await sql`pragma synchronous = normal`.execute(one);
    try {
      return await write(one);
    } finally {
      await sql`pragma synchronous = full`.execute(one);
    }
  });
}
