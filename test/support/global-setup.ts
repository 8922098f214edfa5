// Starts one PostgreSQL for the whole run, and migrates a database for servers to copy. Test files also share the
// compiled sources, which saves each of them a second.

import { join } from 'node:path';
import { makeTemplates, removeTemplates } from './databases.ts';
import { type Postgres, startPostgres } from './postgres.ts';

let postgres: Postgres | undefined;
let template: string | undefined;

export async function globalSetup(): Promise<void> {
  process.env.NODE_COMPILE_CACHE = join(import.meta.dirname, '../../node_modules/.cache/millrace');
  process.env.NODE_COMPILE_CACHE_PORTABLE = '1';
  postgres = await startPostgres();
  process.env.MILLRACE_TEST_POSTGRES = postgres.url;
  template = await makeTemplates(postgres.url);
  process.env.MILLRACE_TEST_TEMPLATE = template;
}

export async function globalTeardown(): Promise<void> {
  if (template !== undefined) await removeTemplates(template);
  await postgres?.stop();
}
