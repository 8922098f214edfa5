// PostgreSQL through a `pg` pool. Loaded only when it is configured.

import { type Dialect, PostgresDialect } from 'kysely';
import pg from 'pg';
import { DatabaseHealth } from '#db/health.ts';
import { GuardedPool } from './postgres-guard.ts';

const int8 = 20;
const numeric = 1700;

export function createPostgresDialect(
  url: string,
  poolSize: number,
  health = new DatabaseHealth(),
): Dialect {
  const types: pg.CustomTypesConfig = {
    // Our 64-bit columns are times in milliseconds and counts. They and their sums are far below 2^53.
    getTypeParser: (oid, format) =>
      oid === int8 || oid === numeric ? Number : pg.types.getTypeParser(oid, format),
  };
  const pool = new GuardedPool(
    {
      connectionString: url,
      max: poolSize,
      types,
      connectionTimeoutMillis: 10_000,
      idleTimeoutMillis: 30_000,
      // A query that hangs is treated as failed.
      query_timeout: 30_000,
      // The database ends a transaction whose server was cut off. Until then its locks hold up every other server.
      // Not as a start-up parameter, which PgBouncer refuses.
      onConnect: async (client) => {
        await client.query('set idle_in_transaction_session_timeout = 10000');
      },
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      application_name: 'millrace',
    },
    health,
  );
  return new PostgresDialect({ pool });
}
