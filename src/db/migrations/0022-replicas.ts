// Replicas of deployments on machines. Released: never edit, add a migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table instances add column deployment_id text`.execute(db);
  await db.schema
    .createTable('replicas')
    .addColumn('id', 'text', (column) => column.primaryKey().references('instances.id'))
    .addColumn('deployment_id', 'text', (column) => column.notNull())
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('host_id', 'text', (column) => column.notNull())
    .addColumn('revision', 'integer', (column) => column.notNull())
    .addColumn('settings', 'text', (column) => column.notNull())
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('ready_at', 'bigint')
    .execute();
}
