// Stored responses of the Responses API. A conversation is a tree of responses, cut into lines: a
// response continues the line of the one before it, or begins a line of its own if that is taken.
// The whole way to a response is thus a few (line, depth) pairs, however long it is. Released:
// never edit, add a migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('responses')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) =>
      column.notNull().references('accounts.id').onDelete('cascade'),
    )
    .addColumn('previous_id', 'text')
    .addColumn('line_id', 'text', (column) => column.notNull())
    .addColumn('depth', 'integer', (column) => column.notNull())
    .addColumn('path', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('bytes', 'bigint', (column) => column.notNull())
    .addColumn('chain_bytes', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('body', 'text', (column) => column.notNull())
    .addUniqueConstraint('responses_by_line', ['line_id', 'depth'])
    .execute();
  await db.schema
    .createIndex('responses_by_account')
    .on('responses')
    .columns(['account_id', 'created_at', 'id'])
    .execute();
  await createItems(db);
  await createRuns(db);
  await db.schema
    .createTable('response_storage')
    .addColumn('account_id', 'text', (column) =>
      column.primaryKey().references('accounts.id').onDelete('cascade'),
    )
    .addColumn('bytes', 'bigint', (column) => column.notNull())
    .execute();
}

async function createItems(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('response_items')
    .addColumn('response_id', 'text', (column) =>
      column.notNull().references('responses.id').onDelete('cascade'),
    )
    .addColumn('position', 'integer', (column) => column.notNull())
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('is_output', 'integer', (column) => column.notNull())
    .addColumn('is_ours', 'integer', (column) => column.notNull())
    .addColumn('bytes', 'integer', (column) => column.notNull())
    .addColumn('content', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('response_items_key', ['response_id', 'position'])
    .execute();
  // Clients send the same ids again and again. Only those that this server made are looked up.
  await sql`create index response_items_by_id on response_items (account_id, id) where is_ours = 1`.execute(
    db,
  );
}

async function createRuns(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('response_runs')
    .addColumn('response_id', 'text', (column) =>
      column.primaryKey().references('responses.id').onDelete('cascade'),
    )
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('key_id', 'text')
    .addColumn('user_id', 'text')
    .addColumn('runner', 'text')
    .addColumn('lease_until', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('request', 'text', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('response_events')
    .addColumn('response_id', 'text', (column) =>
      column.notNull().references('responses.id').onDelete('cascade'),
    )
    .addColumn('first', 'integer', (column) => column.notNull())
    .addColumn('last', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('events', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('response_events_key', ['response_id', 'first'])
    .execute();
}
