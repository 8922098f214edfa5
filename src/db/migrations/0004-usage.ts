// What requests used: a row each, sums by the hour, sums by the month. Released: never edit, add a
// migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // No foreign keys: they would be looked up for every request, and what was used stays true in any case.
  await db.schema
    .createTable('usage_requests')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('key_id', 'text')
    .addColumn('user_id', 'text')
    .addColumn('operation', 'text', (column) => column.notNull())
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('served_model', 'text', (column) => column.notNull())
    .addColumn('backend', 'text', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('code', 'text')
    .addColumn('prompt_tokens', 'bigint', (column) => column.notNull())
    .addColumn('completion_tokens', 'bigint', (column) => column.notNull())
    .addColumn('cached_tokens', 'bigint', (column) => column.notNull())
    .addColumn('first_token_ms', 'bigint')
    .addColumn('duration_ms', 'bigint', (column) => column.notNull())
    .addColumn('cost_nano', 'bigint', (column) => column.notNull())
    .addColumn('process', 'text')
    .execute();
  await sql`create index usage_requests_by_time on usage_requests (account_id, at, id)`.execute(db);
  await sql`create index usage_requests_by_model
    on usage_requests (account_id, model, at, id)`.execute(db);
  await sql`create index usage_requests_by_key
    on usage_requests (account_id, key_id, at, id)`.execute(db);
  // Most are done: only the others are worth finding by their status.
  await sql`create index usage_requests_by_status
    on usage_requests (account_id, status, at, id) where status <> 'done'`.execute(db);
  await sql`create index usage_requests_running
    on usage_requests (process) where status = 'running'`.execute(db);

  const counts = ['requests', 'errors', 'aborted', 'prompt_tokens', 'completion_tokens'];
  const sums = ['cached_tokens', 'cost_nano', 'first_token_ms', 'first_tokens'];
  let hours = db.schema
    .createTable('usage_hours')
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('hour', 'bigint', (column) => column.notNull())
    .addColumn('key_id', 'text', (column) => column.notNull())
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('backend', 'text', (column) => column.notNull());
  for (const name of [...counts, ...sums]) {
    hours = hours.addColumn(name, 'bigint', (column) => column.notNull());
  }
  await hours
    .addPrimaryKeyConstraint('usage_hours_pk', ['account_id', 'hour', 'key_id', 'model', 'backend'])
    .execute();

  await db.schema
    .createTable('spend')
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('key_id', 'text', (column) => column.notNull())
    .addColumn('month', 'text', (column) => column.notNull())
    .addColumn('cost_nano', 'bigint', (column) => column.notNull())
    .addColumn('tokens', 'bigint', (column) => column.notNull())
    .addColumn('requests', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('spend_pk', ['account_id', 'key_id', 'month'])
    .execute();

  await db.schema
    .createTable('usage_processes')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('last_seen', 'bigint', (column) => column.notNull())
    .execute();
}
