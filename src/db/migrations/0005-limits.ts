// Limits of keys and accounts. Released: never edit, add a migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const names = ['requests_per_minute', 'tokens_per_minute', 'concurrent_requests'];
  for (const table of ['accounts', 'api_keys']) {
    // One at a time: SQLite adds no two columns in one statement.
    for (const name of [...names, 'monthly_budget_nano']) {
      await db.schema.alterTable(table).addColumn(name, 'bigint').execute();
    }
  }
}
