// Several hosts: which there are, and where each instance, GPU and filesystem is. What existed before was
// on the one host of its server, which takes these rows over at its next start. Released: never edit.

import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';

/** The host of everything older than hosts; a server without one of its own becomes it. */
const formerHost = '0'.repeat(32);

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('hosts')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull().unique())
    .addColumn('region', 'text', (column) => column.notNull())
    .addColumn('driver', 'text', (column) => column.notNull())
    .addColumn('source', 'text', (column) => column.notNull())
    .addColumn('url', 'text')
    .addColumn('target', 'text')
    .addColumn('fingerprint', 'text')
    .addColumn('pool', 'text')
    .addColumn('network', 'text')
    .addColumn('project', 'text')
    .addColumn('filesystems_path', 'text')
    .addColumn('extras', 'text', (column) => column.notNull().defaultTo('{}'))
    .addColumn('draining', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('seen_at', 'bigint')
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addColumn('report', 'text')
    .execute();

  await db.schema
    .createTable('installation')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .execute();
  await sql`insert into installation (id) values (${randomUUID().replaceAll('-', '')})`.execute(db);

  await addTo(db, 'instances', 'host_id', formerHost);
  await addTo(db, 'instances', 'image', 'host');
  await db.schema.alterTable('instances').addColumn('node', 'text').execute();
  await db.schema
    .alterTable('instances')
    .addColumn('host_silent', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
  await sql`drop index instances_address`.execute(db);
  await sql`create unique index instances_address on instances (host_id, address)
    where status <> 'terminated' and address <> ''`.execute(db);
  await sql`create index instances_by_host on instances (host_id)
    where status <> 'terminated'`.execute(db);

  await sql`create index instances_silent on instances (host_id) where host_silent = 1`.execute(db);

  await db.schema.alterTable('filesystems').addColumn('host_id', 'text').execute();
  await db.schema.alterTable('filesystems').addColumn('node', 'text').execute();
  await sql`update filesystems set host_id = ${formerHost}`.execute(db);

  // SQLite can't change a primary key.
  await sql`alter table instance_gpus rename to former_gpus`.execute(db);
  await db.schema
    .createTable('instance_gpus')
    .addColumn('host_id', 'text', (column) => column.notNull())
    .addColumn('node', 'text', (column) => column.notNull())
    .addColumn('address', 'text', (column) => column.notNull())
    .addColumn('instance_id', 'text', (column) => column.notNull().references('instances.id'))
    .addPrimaryKeyConstraint('instance_gpus_place', ['host_id', 'node', 'address'])
    .execute();
  await sql`insert into instance_gpus (host_id, node, address, instance_id)
    select ${formerHost}, '', address, instance_id from former_gpus`.execute(db);
  await sql`drop table former_gpus`.execute(db);
  await db.schema
    .createIndex('instance_gpus_by_instance')
    .on('instance_gpus')
    .column('instance_id')
    .execute();

  const { rows } = await sql`select id from instances union all
    select id from filesystems limit 1`.execute(db);
  if (rows.length === 0) return;
  await sql`insert into hosts (id, name, region, driver, source, draining, created_at, status)
    values (${formerHost}, 'former', 'us-west-1', 'sandbox', 'builtin', 0, 0, 'offline')`.execute(
    db,
  );
}

const addTo = (db: Kysely<unknown>, table: string, column: string, value: string) =>
  db.schema
    .alterTable(table)
    .addColumn(column, 'text', (made) => made.notNull().defaultTo(value))
    .execute();
