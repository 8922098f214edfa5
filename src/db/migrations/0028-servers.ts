// The servers that share the database, and which of them runs each deployment. Released: never
// edit, add a migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('servers')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('url', 'text')
    .addColumn('key', 'text')
    .addColumn('seen_at', 'bigint', (column) => column.notNull())
    .execute();
  await sql`alter table deployments add column runner_id text not null default ''`.execute(db);
  await sql`update deployments set runner_id = host_id`.execute(db);
}
