// The GPUs that models on a host have taken, so that no machine gets them.
// Released: never edit, add a migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('model_gpus')
    .addColumn('host_id', 'text', (column) => column.notNull())
    .addColumn('address', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('model_gpus_place', ['host_id', 'address'])
    .execute();
}
