// Rows of earlier versions are all there after the migrations, each once and as it was.

import assert from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Kysely, sql } from 'kysely';
import { createUsageRequests } from '#accounts/usage/requests.ts';
import { up as make } from '#db/migrations/0004-usage.ts';
import { up as order } from '#db/migrations/0008-usage-order.ts';
import { up as addReserved } from '#db/migrations/0010-reserved-usage.ts';
import { up as addNames } from '#db/migrations/0013-usage-names.ts';
import { createPostgresDialect } from '#db/postgres/postgres.ts';
import { createSqliteDialect } from '#db/sqlite/sqlite.ts';
import type { Database, Tables } from '#db/tables/tables.ts';
import type { UsageRequestRow } from '#db/tables/usage-rows.ts';
import { bothDatabases, createDatabase } from '#test/support/databases.ts';
import { accountId, endedRow, insertRows, readRows } from '#test/support/usage/usage.ts';

type Former = Kysely<{ usage_requests: Omit<UsageRequestRow, 'reserved'> }>;

for (const database of bothDatabases) {
  describe(`usage of earlier versions, on ${database}`, () => {
    async function withDatabase(use: (db: Database, former: Former) => Promise<void>) {
      const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'));
      const { url, drop } = await createDatabase(database);
      const dialect =
        url === null ? createSqliteDialect(join(folder, 'a.db')) : createPostgresDialect(url, 2);
      const db: Database = new Kysely<Tables>({ dialect });
      await make(db as unknown as Kysely<unknown>);
      await use(db, db as unknown as Former).finally(async () => {
        await db.destroy();
        await drop();
        await rm(folder, { recursive: true });
      });
    }
    const migrate = async (db: Database) => {
      const untyped = db as unknown as Kysely<unknown>;
      for (const up of [order, addReserved, addNames]) await untyped.transaction().execute(up);
    };

    test('every row stays as it was, and none can be there twice', async () => {
      await withDatabase(async (db, former) => {
        const first = endedRow({ user_id: 'u', cached_tokens: 3, at: 103 });
        const rows = [
          first,
          endedRow({ account_id: 'z', key_id: 'k', at: 102 }),
          endedRow({ status: 'running', process: 'p', first_token_ms: null, at: 101 }),
          endedRow({ served_model: 's', status: 'failed', code: 'upstream_error', at: 102 }),
          endedRow({ model: '', backend: '', at: Date.UTC(2026, 10, 16) }),
        ];
        const before = rows.map(({ reserved: _, ...row }) => row);
        await former.insertInto('usage_requests').values(before).execute();
        await migrate(db);
        assert.deepEqual(await readRows(db), rows);
        await assert.rejects(insertRows(db, [{ ...first, model: 'other' }]), /unique/i);
        const days = await db
          .selectFrom('usage_names')
          .select(['name', 'last_day'])
          .where('name', 'in', ['', 'upstream_error'])
          .orderBy('name')
          .execute();
        assert.deepEqual(
          days.map(({ name, last_day }) => [name, last_day]),
          [
            ['', Math.floor(Date.UTC(2026, 10, 16) / 86_400_000)],
            ['upstream_error', 0],
          ],
        );
      });
    });

    test('rows of several steps and accounts are copied once, in their order', async () => {
      await withDatabase(async (db, former) => {
        const { reserved: _, ...row } = endedRow();
        // Ends of steps fall between rows of one moment, and between accounts.
        await former
          .insertInto('usage_requests')
          .values({ ...row, id: 'x' })
          .execute();
        await sql`with recursive numbers(i) as (select 0 union all select i + 1 from numbers where i < 104999)
          insert into usage_requests select cast(100000 + i as text),
            case when i < 80000 then ${sql.lit(accountId)} else 'z' end, ${sql.lit('k')} || cast(i % 7 as text),
            user_id, operation, model, served_model, backend, at + i / 10, status, code, prompt_tokens,
            completion_tokens, cached_tokens, first_token_ms, duration_ms, cost_nano, process
          from numbers, usage_requests where id = 'x'`.execute(former);
        await migrate(db);
        const { count } = await db
          .selectFrom('usage_requests')
          .select(({ fn }) => fn.countAll<number>().as('count'))
          .executeTakeFirstOrThrow();
        assert.equal(count, 105_001);
        const page = await readNewest(db);
        assert.deepEqual(page, ['179999', '179998', '179997']);
      });
    });
  });
}

/** The newest three of the first account. The page also reads labels of keys and addresses of people. */
async function readNewest(db: Database): Promise<string[]> {
  await sql`create table api_keys (id text, label text)`.execute(db);
  await sql`create table users (id text, email text)`.execute(db);
  const { data } = await createUsageRequests(db).page(accountId, { limit: 3 });
  return data.map(({ id }) => id);
}
