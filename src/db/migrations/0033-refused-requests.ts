// How many of the errors of an hour were refused requests. Released: never edit, add a migration instead.

import type { Kysely } from 'kysely';

/** Those of earlier hours count as failed. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('usage_hours')
    .addColumn('refused', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
}
