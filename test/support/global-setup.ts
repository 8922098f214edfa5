// Starts one PostgreSQL for the whole run. Test files find it in MILLRACE_TEST_POSTGRES.

import { type Postgres, startPostgres } from './postgres.ts';

let postgres: Postgres | undefined;

export async function globalSetup(): Promise<void> {
  postgres = await startPostgres();
  process.env.MILLRACE_TEST_POSTGRES = postgres.url;
}

export async function globalTeardown(): Promise<void> {
  await postgres?.stop();
}
