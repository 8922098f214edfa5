// Which deployments come from the configuration file. Released: never edit, add a migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('deployments')
    .addColumn('in_file', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
}
