// PostgreSQL through a `pg` pool. Loaded only when it is configured.

import { type Dialect, PostgresDialect } from 'kysely';
import pg from 'pg';

const int8 = 20;
const numeric = 1700;

export function createPostgresDialect(url: string, poolSize: number): Dialect {
  const types: pg.CustomTypesConfig = {
    // Our 64-bit columns are times in milliseconds and counts. They and their sums are far below 2^53.
    getTypeParser: (oid, format) =>
      oid === int8 || oid === numeric ? Number : pg.types.getTypeParser(oid, format),
  };
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    types,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 30_000,
    // A database that hangs is treated as failed.
    query_timeout: 30_000,
    application_name: 'millrace',
  });
  // An idle connection that breaks is dropped and replaced. The next query reports a failure that persists.
  pool.on('error', () => {});
  // A connection that breaks in use fails its query. Without a listener, the error event would end the process.
  pool.on('connect', (client) => client.on('error', () => {}));
  return new PostgresDialect({ pool });
}
