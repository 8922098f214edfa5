// Both databases, for suites that hold state: `for (const database of databases) describe(...)`.

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { type Postgres, startPostgres } from './postgres.ts';

export const databases = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof databases)[number];

let shared: Promise<Postgres> | undefined;

/** A new, empty database: null means SQLite in the data directory. */
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

/** Ends a PostgreSQL that this process had to start itself; with `npm test` there is none. */
export async function stopOwnPostgres(): Promise<void> {
  await (await shared)?.stop();
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}
