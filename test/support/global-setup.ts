// Starts one PostgreSQL for the whole run. Test files find it in MILLRACE_TEST_POSTGRES, and share the compiled
// sources, which saves each of them a second.

import { join } from 'node:path';
import { type Postgres, startPostgres } from './postgres.ts';

let postgres: Postgres | undefined;

export async function globalSetup(): Promise<void> {
  process.env.NODE_COMPILE_CACHE = join(import.meta.dirname, '../../node_modules/.cache/millrace');
  postgres = await startPostgres();
  process.env.MILLRACE_TEST_POSTGRES = postgres.url;
}

export async function globalTeardown(): Promise<void> {
  await postgres?.stop();
}
