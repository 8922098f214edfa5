// Opens the configured database and migrates it to the newest schema.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyBaseLogger } from 'fastify';
import { type Dialect, Kysely } from 'kysely';
import { createSqliteDialect } from '#db/sqlite/sqlite.ts';
import type { Database, Tables } from '#db/tables/tables.ts';
import { Refusal } from '#lib/errors.ts';
import { StartError, toReason } from '#lib/start-error.ts';
import { makeDataDirectory } from './data-directory.ts';
import { DatabaseHealth } from './health.ts';
import { checkMigrated, migrate } from './migrate.ts';

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
  health = new DatabaseHealth(log),
): Promise<Database> {
  makeDataDirectory(options.dataDir);
  return open(options, health, (db) => migrate(db, log));
}

/** Opens the database of an installation beside its server, and changes no schema. Throws a StartError. */
export async function openExistingDatabase(options: DatabaseOptions): Promise<Database> {
  if (options.url === null && !existsSync(sqliteFile(options.dataDir))) {
    throw new StartError(
      `There is no database in ${options.dataDir}. Name the server's with --data-dir or --config.`,
    );
  }
  return open(options, new DatabaseHealth(), checkMigrated);
}

async function open(
  options: DatabaseOptions,
  health: DatabaseHealth,
  prepare: (db: Database) => Promise<void>,
): Promise<Database> {
  let db: Database | undefined;
  try {
    db = new Kysely<Tables>({ dialect: await createDialect(options, health) });
    await prepare(db);
    return db;
  } catch (error) {
    await db?.destroy().catch(() => {});
    // The URL holds a password, so it is not shown.
    const name = options.url === null ? sqliteFile(options.dataDir) : 'at database.url';
    const cause = error instanceof Refusal ? error.cause : error;
    throw new StartError(`The database ${name} can't be used: ${toReason(cause)}.`, cause);
  }
}

export const sqliteFile = (dataDir: string) => join(dataDir, 'millrace.db');

async function createDialect(
  { url, poolSize, dataDir }: DatabaseOptions,
  health: DatabaseHealth,
): Promise<Dialect> {
  if (url === null) return createSqliteDialect(sqliteFile(dataDir));
  const { createPostgresDialect } = await import('#db/postgres/postgres.ts');
  return createPostgresDialect(url, poolSize, health);
}
