// Models that the server runs by itself. Released: never edit, add a migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('deployments')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('host_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull().unique())
    .addColumn('model_id', 'text', (column) => column.notNull())
    .addColumn('spec', 'text', (column) => column.notNull())
    .addColumn('previous', 'text')
    .addColumn('revision', 'integer', (column) => column.notNull())
    .addColumn('stopped', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute();
}
