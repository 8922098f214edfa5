// Backends added while the server runs, those that are drained, and a count of changes that other servers
// look at. Released: never edit, add a migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('backends')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('model_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('url', 'text', (column) => column.notNull())
    .addColumn('upstream_model', 'text', (column) => column.notNull())
    .addColumn('server', 'text', (column) => column.notNull())
    .addColumn('secrets', 'text', (column) => column.notNull())
    .addColumn('weight', 'double precision', (column) => column.notNull())
    .addColumn('concurrency', 'integer')
    .addColumn('connect_ms', 'integer', (column) => column.notNull())
    .addColumn('first_byte_ms', 'integer', (column) => column.notNull())
    .addColumn('idle_ms', 'integer', (column) => column.notNull())
    .addColumn('continue_streams', 'integer')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addUniqueConstraint('backends_name', ['model_id', 'name'])
    .execute();

  await db.schema
    .createTable('drained_backends')
    .addColumn('model_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('drained_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('drained_backends_pk', ['model_id', 'name'])
    .execute();

  await db.schema
    .createTable('backends_version')
    .addColumn('version', 'bigint', (column) => column.notNull())
    .execute();
  await (db as Kysely<{ backends_version: { version: number } }>)
    .insertInto('backends_version')
    .values({ version: 0 })
    .execute();
}
