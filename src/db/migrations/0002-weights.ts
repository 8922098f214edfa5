// Pulled weights: the pulls, and which weights serve which model. Released: never edit, add a migration
// instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('weight_pulls')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('store_id', 'text', (column) => column.notNull())
    .addColumn('model_id', 'text')
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('repo', 'text', (column) => column.notNull())
    .addColumn('commit_id', 'text', (column) => column.notNull())
    .addColumn('files', 'text', (column) => column.notNull())
    .addColumn('bytes_total', 'bigint', (column) => column.notNull())
    .addColumn('bytes_done', 'bigint', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('error', 'text')
    .addColumn('runner', 'text')
    .addColumn('lease_until', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .execute();
  // Also what keeps two pulls from writing one file.
  await db.schema
    .createIndex('weight_pulls_live')
    .unique()
    .on('weight_pulls')
    .columns(['store_id', 'name'])
    .where(sql.ref('state'), 'in', ['queued', 'running'])
    .execute();

  await db.schema
    .createTable('model_weights')
    .addColumn('store_id', 'text', (column) => column.notNull())
    .addColumn('model_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('model_weights_pk', ['store_id', 'model_id'])
    .execute();
}
