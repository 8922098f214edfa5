// One PostgreSQL for the whole run; test files find it by the variable.

import { type Postgres, startPostgres } from './postgres.ts';

let postgres: Postgres | undefined;

export async function globalSetup(): Promise<void> {
  postgres = await startPostgres();
  process.env.MILLRACE_TEST_POSTGRES = postgres.url;
}

export async function globalTeardown(): Promise<void> {
  await postgres?.stop();
}
