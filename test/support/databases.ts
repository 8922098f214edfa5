// The databases that suites with state run on: `for (const database of databases) describe(...)`. Suites in which SQL or a
// lock differs take `bothDatabases`. With MILLRACE_TEST_DATABASES=sqlite, as `npm run test:quick` sets it, SQLite is alone.

import { randomUUID } from 'node:crypto';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { openDatabase, sqliteFile } from '#db/open.ts';
import { type Postgres, startPostgres } from './postgres.ts';
import { inSoak } from './soak.ts';

export type DatabaseKind = 'sqlite' | 'postgres';

const hasPostgres = process.env.MILLRACE_TEST_DATABASES !== 'sqlite';

export const bothDatabases: readonly DatabaseKind[] = hasPostgres
  ? ['sqlite', 'postgres']
  : ['sqlite'];

/** SQLite in `npm test`, and PostgreSQL as well in the long form. */
export const databases: readonly DatabaseKind[] = inSoak(['sqlite'], bothDatabases);

/** Why a test that needs PostgreSQL is skipped; false if it runs. */
export const noPostgres = hasPostgres ? false : 'PostgreSQL is left out by MILLRACE_TEST_DATABASES';

let shared: Promise<Postgres> | undefined;

interface TestDatabase {
  /** Null for SQLite, which lives in the data directory. */
  readonly url: string | null;
  drop(): Promise<void>;
}

/** Creates an empty database. */
export const createDatabase = (kind: DatabaseKind): Promise<TestDatabase> =>
  kind === 'sqlite' ? Promise.resolve({ url: null, drop: async () => {} }) : createPostgres();

const templateName = 'migrated';
/** Set by the global set-up: the folder of an SQLite database that was migrated and is empty. */
const templateFolder = process.env.MILLRACE_TEST_TEMPLATE;

/** Creates a database that was migrated already, if there is one to copy: the migrations take 50 ms on SQLite. */
export async function createMigrated(kind: DatabaseKind, dataDir: string): Promise<TestDatabase> {
  if (templateFolder === undefined) return createDatabase(kind);
  if (kind === 'postgres') return createPostgres(`template ${templateName}`);
  await copyFile(sqliteFile(templateFolder), sqliteFile(dataDir));
  return createDatabase(kind);
}

/** Makes what `createMigrated` copies, and returns the folder. */
export async function makeTemplates(postgresUrl: string): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-template-'));
  await execute(postgresUrl, `create database ${templateName}`);
  for (const url of [null, toUrl(postgresUrl, templateName)])
    await (await openDatabase({ url, poolSize: 1, dataDir })).destroy();
  return dataDir;
}

export const removeTemplates = (folder: string) => rm(folder, { recursive: true, force: true });

async function createPostgres(from = ''): Promise<TestDatabase> {
  shared ??= startPostgres();
  const { url } = await shared;
  const name = `t_${randomUUID().replaceAll('-', '')}`;
  await execute(url, `create database ${name} ${from}`);
  return {
    url: toUrl(url, name),
    drop: () => execute(url, `drop database if exists ${name} with (force)`),
  };
}

function toUrl(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

/** Stops a PostgreSQL that this process started itself. Under `npm test` the global set-up owns it. */
export async function stopOwnPostgres(): Promise<void> {
  await (await shared)?.stop();
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}
