// Transactions that don't wait for the disk.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '#db/open.ts';
import { commitQuickly } from '#db/sqlite/quick-commit.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import { createDatabase, stopOwnPostgres } from '#test/support/databases.ts';
import { makeFolder } from '#test/support/process.ts';

after(stopOwnPostgres);

test('only a quick commit on SQLite leaves out the sync, even if it fails', async (t) => {
  const { url, drop } = await createDatabase('sqlite');
  const db = await openDatabase({ url, poolSize: 1, dataDir: makeFolder() });
  t.after(() => db.destroy().then(drop));
  const readMode = async (on: Database | Tx) => {
    const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(on);
    return rows[0]?.synchronous;
  };
  const full = 2;
  assert.equal(await readMode(db), full);
  const [inside, meanwhile] = await Promise.all([
    commitQuickly(db, readMode),
    db.transaction().execute(readMode),
  ]);
  assert.equal(inside, 1);
  assert.equal(meanwhile, full);
  await assert.rejects(
    commitQuickly(db, () => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.equal(await readMode(db), full);
});
