// Opens the configured database and migrates it to the newest schema.

import { join } from 'node:path';
import type { FastifyBaseLogger } from 'fastify';
import { type Dialect, Kysely } from 'kysely';
import { StartError, toReason } from '#lib/start-error.ts';
import { makeDataDirectory } from './data-directory.ts';
import { migrate } from './migrate.ts';
import { createSqliteDialect } from './sqlite.ts';
import type { Database, Tables } from './tables.ts';

export interface DatabaseOptions {
  /** A `postgres://` address; null for SQLite in the data directory. */
  readonly url: string | null;
  readonly poolSize: number;
  readonly dataDir: string;
}

/** Throws a StartError that names the database that can't be used and says why. */
export async function openDatabase(
  options: DatabaseOptions,
  log?: FastifyBaseLogger,
): Promise<Database> {
  makeDataDirectory(options.dataDir);
  try {
    const db: Database = new Kysely<Tables>({ dialect: await createDialect(options) });
    await migrate(db, log);
    return db;
  } catch (error) {
    // The URL holds a password, so it is not shown.
    const name = options.url === null ? sqliteFile(options.dataDir) : 'at database.url';
    throw new StartError(`The database ${name} can't be used: ${toReason(error)}.`, error);
  }
}

export const sqliteFile = (dataDir: string) => join(dataDir, 'millrace.db');

async function createDialect({ url, poolSize, dataDir }: DatabaseOptions): Promise<Dialect> {
  if (url === null) return createSqliteDialect(sqliteFile(dataDir));
  const { createPostgresDialect } = await import('./postgres.ts');
  return createPostgresDialect(url, poolSize);
}
