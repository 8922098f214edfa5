// How long each replica of a deployment ran. Released: never edit, add a migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('deployment_runs')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('deployment_id', 'text', (column) => column.notNull())
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('ready_at', 'bigint')
    .addColumn('seen_at', 'bigint', (column) => column.notNull())
    .addColumn('hourly_cents', 'integer', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('deployment_runs_by_deployment')
    .on('deployment_runs')
    .columns(['deployment_id', 'started_at'])
    .execute();
}
