// Rows that are older than the hosts table belong to the own host of the first server that starts afterwards.

import assert from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { type Kysely, sql } from 'kysely';
import { ensureOwnHost, readHostId } from '#cloud/hosts/own-host.ts';
import { up } from '#db/migrations/0007-hosts.ts';
import { openDatabase } from '#db/open.ts';
import type { Database } from '#db/tables/tables.ts';
import { createHandClock } from '#test/support/clock.ts';
import { bothDatabases, createDatabase, stopOwnPostgres } from '#test/support/databases.ts';

describe('migrations of hosts', () => {
  after(stopOwnPostgres);

  /** The columns of migration 0003 that the hosts migration changes. */
  async function undo(db: Database): Promise<void> {
    for (const statement of [
      'drop index instances_by_host',
      'drop index instances_silent',
      'drop index instances_address',
      'alter table instances drop column host_id',
      'alter table instances drop column node',
      'alter table instances drop column image',
      'alter table instances drop column host_silent',
      'alter table filesystems drop column host_id',
      'alter table filesystems drop column node',
      'drop table instance_gpus',
      'drop table hosts',
      'drop table installation',
      'create table instance_gpus (address text primary key, instance_id text not null)',
      "create unique index instances_address on instances (address) where status <> 'terminated'",
    ]) {
      await sql.raw(statement).execute(db);
    }
  }

  for (const database of bothDatabases) {
    describe(`rows from before the hosts table, on ${database}`, () => {
      test('instances, their GPUs and filesystems are given to the first server, once', async () => {
        const folder = await mkdtemp(join(tmpdir(), 'millrace-former-'));
        const { url, drop } = await createDatabase(database);
        const db = await openDatabase({ url, poolSize: 2, dataDir: folder });
        await undo(db);
        await sql`insert into accounts (id, name, created_at) values ('a', 'a', 0)`.execute(db);
        await sql`insert into instances (id, account_id, status, region, type, type_name,
        price_cents_per_hour, pool, vcpus, memory_gib, storage_gib, ssh_key_id, ssh_key_name,
        ssh_public_key, image_id, tags, address, firewall_stale, launched_at, version,
        claimed_until, attempts) values ('i', 'a', 'active', 'us-west-1', '{}', 't', 1, 'gpu', 1,
        1, 1, 'k', 'k', 'k', 'image', '[]', '127.77.1.1', 0, 0, 0, 0, 0)`.execute(db);
        await sql`insert into instance_gpus (address, instance_id) values ('GPU-1', 'i')`.execute(
          db,
        );
        await sql`insert into filesystems (id, account_id, name, region, state, created_at,
        created_by, created_by_email, claimed_until, attempts) values ('f', 'a', 'f', 'us-west-1',
        'ready', 0, 'u', 'u', 0, 0)`.execute(db);
        await db.transaction().execute((tx) => up(tx as unknown as Kysely<unknown>));

        const own = { name: 'here', region: 'us-west-1', driver: 'sandbox' as const };
        const id = readHostId(folder);
        assert.equal(readHostId(folder), id);
        const clock = createHandClock();
        await ensureOwnHost(db, clock, id, own);
        await ensureOwnHost(db, clock, 'b'.repeat(32), own);
        await ensureOwnHost(db, clock, id, own);
        const instance = await db.selectFrom('instances').selectAll().executeTakeFirstOrThrow();
        assert.deepEqual([instance.host_id, instance.node, instance.image], [id, null, 'host']);
        const gpus = await db.selectFrom('instance_gpus').selectAll().execute();
        assert.deepEqual(
          gpus.map((row) => ({ ...row })),
          [{ host_id: id, node: '', address: 'GPU-1', instance_id: 'i' }],
        );
        const filesystem = await db.selectFrom('filesystems').selectAll().executeTakeFirstOrThrow();
        assert.equal(filesystem.host_id, id);
        const hosts = await db.selectFrom('hosts').select(['id', 'name']).orderBy('name').execute();
        assert.deepEqual(
          hosts.map((row) => ({ ...row })),
          [
            { id, name: 'here' },
            { id: 'b'.repeat(32), name: 'here-2' },
          ],
        );
        await db.destroy();
        await drop();
        await rm(folder, { recursive: true });
      });
    });
  }
});
