// Files of the inference API, whose contents are blocks, and batches of requests. Released: never edit, add a migration
// instead.

import { type Kysely, PostgresAdapter, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await createFiles(db);
  await db.schema
    .createTable('batches')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) =>
      column.notNull().references('accounts.id').onDelete('cascade'),
    )
    .addColumn('key_id', 'text')
    .addColumn('user_id', 'text')
    .addColumn('endpoint', 'text', (column) => column.notNull())
    .addColumn('completion_window', 'text', (column) => column.notNull())
    .addColumn('metadata', 'text')
    .addColumn('input_file_id', 'text', (column) => column.notNull())
    .addColumn('output_file_id', 'text')
    .addColumn('error_file_id', 'text')
    .addColumn('output_keep_ms', 'bigint')
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('errors', 'text')
    .addColumn('total', 'bigint', (column) => column.notNull())
    .addColumn('completed', 'bigint', (column) => column.notNull())
    .addColumn('failed', 'bigint', (column) => column.notNull())
    .addColumn('done_offset', 'bigint', (column) => column.notNull())
    .addColumn('done_ahead', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addColumn('in_progress_at', 'bigint')
    .addColumn('finalizing_at', 'bigint')
    .addColumn('completed_at', 'bigint')
    .addColumn('failed_at', 'bigint')
    .addColumn('expired_at', 'bigint')
    .addColumn('cancelling_at', 'bigint')
    .addColumn('cancelled_at', 'bigint')
    .addColumn('runner', 'text')
    .addColumn('lease_until', 'bigint')
    .execute();
  await db.schema
    .createIndex('batches_by_account')
    .on('batches')
    .columns(['account_id', 'created_at', 'id'])
    .execute();
  await sql`create index batches_live on batches (created_at)
    where state in ('validating', 'in_progress', 'finalizing', 'cancelling')`.execute(db);
}

async function createFiles(db: Kysely<unknown>): Promise<void> {
  const bytes = db.getExecutor().adapter instanceof PostgresAdapter ? sql`bytea` : sql`blob`;
  await db.schema
    .createTable('files')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) =>
      column.notNull().references('accounts.id').onDelete('cascade'),
    )
    .addColumn('purpose', 'text', (column) => column.notNull())
    .addColumn('filename', 'text', (column) => column.notNull())
    .addColumn('bytes', 'bigint', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .execute();
  await db.schema
    .createIndex('files_by_account')
    .on('files')
    .columns(['account_id', 'created_at', 'id'])
    .execute();
  await db.schema.createIndex('files_by_expiry').on('files').columns(['expires_at']).execute();
  await db.schema
    .createTable('file_blocks')
    .addColumn('file_id', 'text', (column) =>
      column.notNull().references('files.id').onDelete('cascade'),
    )
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('bytes', bytes, (column) => column.notNull())
    .addPrimaryKeyConstraint('file_blocks_key', ['file_id', 'at'])
    .execute();
}
