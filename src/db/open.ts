// Opens the configured database, at its newest schema.

import { join } from 'node:path';
import { type Dialect, Kysely } from 'kysely';
import { migrate } from './migrate.ts';
import { createSqliteDialect } from './sqlite.ts';
import type { Database, Tables } from './tables.ts';

export interface DatabaseOptions {
  /** A `postgres://` address; null for SQLite in the data directory. */
  readonly url: string | null;
  readonly poolSize: number;
  readonly dataDir: string;
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const db: Database = new Kysely<Tables>({ dialect: await createDialect(options) });
  await migrate(db);
  return db;
}

async function createDialect({ url, poolSize, dataDir }: DatabaseOptions): Promise<Dialect> {
  if (url === null) return createSqliteDialect(join(dataDir, 'millrace.db'));
  const { createPostgresDialect } = await import('./postgres.ts');
  return createPostgresDialect(url, poolSize);
}
