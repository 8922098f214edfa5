// Machines, their storage and their firewall. Released: never edit, add a migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('instances')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('name', 'text')
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('status_reason', 'text')
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('type', 'text', (column) => column.notNull())
    .addColumn('type_name', 'text', (column) => column.notNull())
    .addColumn('price_cents_per_hour', 'integer', (column) => column.notNull())
    .addColumn('pool', 'text', (column) => column.notNull())
    .addColumn('vcpus', 'integer', (column) => column.notNull())
    .addColumn('memory_gib', 'integer', (column) => column.notNull())
    .addColumn('storage_gib', 'integer', (column) => column.notNull())
    .addColumn('ssh_key_id', 'text', (column) => column.notNull())
    .addColumn('ssh_key_name', 'text', (column) => column.notNull())
    .addColumn('ssh_public_key', 'text', (column) => column.notNull())
    .addColumn('hostname', 'text')
    .addColumn('image_id', 'text', (column) => column.notNull())
    .addColumn('user_data', 'text')
    .addColumn('tags', 'text', (column) => column.notNull())
    .addColumn('address', 'text', (column) => column.notNull())
    .addColumn('ip', 'text')
    .addColumn('private_ip', 'text')
    .addColumn('ssh_port', 'integer')
    .addColumn('action', 'text')
    .addColumn('action_started_at', 'bigint')
    .addColumn('firewall_stale', 'integer', (column) => column.notNull())
    .addColumn('launched_at', 'bigint', (column) => column.notNull())
    .addColumn('asked_at', 'bigint')
    .addColumn('booted_at', 'bigint')
    .addColumn('terminated_at', 'bigint')
    .addColumn('version', 'integer', (column) => column.notNull())
    .addColumn('due_at', 'bigint')
    .addColumn('claim', 'text')
    .addColumn('claimed_until', 'bigint', (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('last_error', 'text')
    .execute();
  await db.schema
    .createIndex('instances_by_account')
    .on('instances')
    .columns(['account_id', 'launched_at'])
    .execute();
  // What is over and what is settled stays out of these, however much of it there is.
  await sql`create index instances_due on instances (due_at) where due_at is not null`.execute(db);
  await sql`create index instances_live on instances (id) where status <> 'terminated'`.execute(db);
  await sql`create unique index instances_address on instances (address)
    where status <> 'terminated'`.execute(db);

  await db.schema
    .createTable('instance_gpus')
    .addColumn('address', 'text', (column) => column.primaryKey())
    .addColumn('instance_id', 'text', (column) => column.notNull().references('instances.id'))
    .execute();

  await db.schema
    .createTable('filesystems')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('bytes_used', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('created_by', 'text', (column) => column.notNull())
    .addColumn('created_by_email', 'text', (column) => column.notNull())
    .addColumn('due_at', 'bigint')
    .addColumn('claim', 'text')
    .addColumn('claimed_until', 'bigint', (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .execute();
  await sql`create index filesystems_due on filesystems (due_at) where due_at is not null`.execute(
    db,
  );
  await sql`create unique index filesystems_name on filesystems (account_id, name)
    where state <> 'deleting'`.execute(db);

  await db.schema
    .createTable('instance_filesystems')
    .addColumn('instance_id', 'text', (column) => column.notNull().references('instances.id'))
    .addColumn('filesystem_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('mount_point', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('instance_filesystems_pk', ['instance_id', 'filesystem_id'])
    .execute();
  await db.schema
    .createIndex('instance_filesystems_by_filesystem')
    .on('instance_filesystems')
    .column('filesystem_id')
    .execute();

  await db.schema
    .createTable('firewall_rules')
    .addColumn('account_id', 'text', (column) => column.primaryKey().references('accounts.id'))
    .addColumn('rules', 'text', (column) => column.notNull())
    .execute();

  await db.schema
    .createTable('firewall_rulesets')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('rules', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('firewall_rulesets_by_account')
    .on('firewall_rulesets')
    .column('account_id')
    .execute();

  await db.schema
    .createTable('instance_rulesets')
    .addColumn('instance_id', 'text', (column) => column.notNull().references('instances.id'))
    .addColumn('ruleset_id', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('instance_rulesets_pk', ['instance_id', 'ruleset_id'])
    .execute();
  await db.schema
    .createIndex('instance_rulesets_by_ruleset')
    .on('instance_rulesets')
    .column('ruleset_id')
    .execute();

  await db.schema
    .createTable('turns')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .execute();
  await sql`insert into turns (name) values ('launch')`.execute(db);
}
