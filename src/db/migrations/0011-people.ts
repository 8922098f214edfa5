// One-time links that set a new password, the devices that have signed in, and the order in which API keys are listed.
// Released: never edit, add a migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('password_resets')
    .addColumn('user_id', 'text', (column) => column.primaryKey().references('users.id'))
    .addColumn('token_hash', 'text', (column) => column.notNull().unique())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('devices')
    .addColumn('token_hash', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull().references('users.id'))
    .addColumn('last_used_at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('devices_by_user')
    .on('devices')
    .columns(['user_id', 'last_used_at'])
    .execute();
  await db.schema
    .createIndex('api_keys_by_time')
    .on('api_keys')
    .columns(['account_id', 'created_at', 'id'])
    .execute();
  await db.schema.dropIndex('api_keys_by_account').execute();
}
