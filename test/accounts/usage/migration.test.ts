// Rows from before they were kept in their order are all there afterwards, and lists find them.

import assert from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Kysely } from 'kysely';
import { up as make } from '../../../src/db/migrations/0004-usage.ts';
import { up as order } from '../../../src/db/migrations/0008-usage-order.ts';
import { createPostgresDialect } from '../../../src/db/postgres.ts';
import { createSqliteDialect } from '../../../src/db/sqlite.ts';
import type { Database, Tables, UsageRequestRow } from '../../../src/db/tables.ts';
import { createDatabase, databases, stopOwnPostgres } from '../../support/databases.ts';

after(stopOwnPostgres);

const row = (id: number, over: Partial<UsageRequestRow> = {}): UsageRequestRow => ({
  id: String(id).repeat(32),
  account_id: 'a',
  key_id: null,
  user_id: 'u',
  operation: 'chat',
  model: 'm',
  served_model: 's',
  backend: 'b',
  at: 100 - id,
  status: 'done',
  code: null,
  prompt_tokens: 1,
  completion_tokens: 2,
  cached_tokens: 3,
  first_token_ms: 4,
  duration_ms: 5,
  cost_nano: 6,
  process: null,
  ...over,
});

for (const database of databases) {
  describe(`usage from before its order, on ${database}`, () => {
    test('every row stays as it was, and none can be there twice', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'));
      const { url, drop } = await createDatabase(database);
      const dialect =
        url === null ? createSqliteDialect(join(folder, 'a.db')) : createPostgresDialect(url, 2);
      const db: Database = new Kysely<Tables>({ dialect });
      const untyped = db as unknown as Kysely<unknown>;
      await make(untyped);
      const rows = [
        row(1),
        row(2, { account_id: 'z', key_id: 'k', at: 99 }),
        row(3, { status: 'running', process: 'p', first_token_ms: null }),
        row(4, { status: 'failed', code: 'upstream_error', at: 99 }),
      ];
      await db.insertInto('usage_requests').values(rows).execute();
      await untyped.transaction().execute(order);

      const kept = await db.selectFrom('usage_requests').selectAll().orderBy('id').execute();
      assert.deepEqual(
        kept.map((one) => ({ ...one })),
        rows,
      );
      const again = db
        .insertInto('usage_requests')
        .values(row(1, { model: 'other' }))
        .execute();
      await assert.rejects(again, /unique/i);
      await db.destroy();
      await drop();
      await rm(folder, { recursive: true });
    });
  });
}
