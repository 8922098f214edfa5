// A revoked key whose accepted requests may finish. Released: never edit, add a migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('api_keys')
    .addColumn('lets_finish', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
}
