// The databases that suites with state run on: `for (const database of databases) describe(...)`.
// With MILLRACE_TEST_DATABASES=sqlite, as `npm run test:quick` sets it, that is SQLite alone.

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { type Postgres, startPostgres } from './postgres.ts';

export type DatabaseKind = 'sqlite' | 'postgres';

const hasPostgres = process.env.MILLRACE_TEST_DATABASES !== 'sqlite';

export const databases: readonly DatabaseKind[] = hasPostgres ? ['sqlite', 'postgres'] : ['sqlite'];

/** Why a test that needs PostgreSQL is skipped; false if it runs. */
export const noPostgres = hasPostgres ? false : 'PostgreSQL is left out by MILLRACE_TEST_DATABASES';

let shared: Promise<Postgres> | undefined;

/** Creates an empty database. Its `url` is null for SQLite, which lives in the data directory. */
export async function createDatabase(
  kind: DatabaseKind,
): Promise<{ url: string | null; drop(): Promise<void> }> {
  if (kind === 'sqlite') return { url: null, drop: async () => {} };
  shared ??= startPostgres();
  const { url } = await shared;
  const name = `t_${randomUUID().replaceAll('-', '')}`;
  await execute(url, `create database ${name}`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return {
    url: own.href,
    drop: () => execute(url, `drop database if exists ${name} with (force)`),
  };
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
