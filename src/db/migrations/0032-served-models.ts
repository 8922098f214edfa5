// Models that have or had a backend, so that the stand-in does not take their place. Released: never edit, add a
// migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('served_models')
    .addColumn('model_id', 'text', (column) => column.primaryKey())
    .addColumn('served_at', 'bigint', (column) => column.notNull())
    .execute();
}
