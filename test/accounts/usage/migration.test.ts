// Rows from before they were kept under another key are all there afterwards, each once, and none of them is
// taken for one with a reserved amount.

import assert from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Kysely } from 'kysely';
import { up as make } from '#db/migrations/0004-usage.ts';
import { up as order } from '#db/migrations/0008-usage-order.ts';
import { up as addReserved } from '#db/migrations/0010-reserved-usage.ts';
import { createPostgresDialect } from '#db/postgres.ts';
import { createSqliteDialect } from '#db/sqlite.ts';
import type { Database, Tables } from '#db/tables.ts';
import { createDatabase, databases } from '#test/support/databases.ts';
import { endedRow, readRows } from '#test/support/usage/usage.ts';

for (const database of databases) {
  describe(`usage from before its order, on ${database}`, () => {
    test('every row stays as it was, and none can exist twice', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'));
      const { url, drop } = await createDatabase(database);
      const dialect =
        url === null ? createSqliteDialect(join(folder, 'a.db')) : createPostgresDialect(url, 2);
      const db: Database = new Kysely<Tables>({ dialect });
      const untyped = db as unknown as Kysely<unknown>;
      await make(untyped);
      const first = endedRow({ user_id: 'u', cached_tokens: 3, at: 103 });
      const rows = [
        first,
        endedRow({ account_id: 'z', key_id: 'k', at: 102 }),
        endedRow({ status: 'running', process: 'p', first_token_ms: null, at: 101 }),
        endedRow({ served_model: 's', status: 'failed', code: 'upstream_error', at: 102 }),
      ];
      const before = rows.map(({ reserved: _, ...row }) => row) as typeof rows;
      await db.insertInto('usage_requests').values(before).execute();
      await untyped.transaction().execute(order);
      await untyped.transaction().execute(addReserved);

      assert.deepEqual(await readRows(db), rows);
      const again = db
        .insertInto('usage_requests')
        .values({ ...first, model: 'other' })
        .execute();
      await assert.rejects(again, /unique/i);
      await db.destroy();
      await drop();
      await rm(folder, { recursive: true });
    });
  });
}
