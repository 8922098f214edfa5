// A migration that fails or is interrupted changes nothing, so the next start begins anew.

import assert from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Kysely, sql } from 'kysely';
import { isMigrated, migrate } from '#db/migrate.ts';
import { createPostgresDialect } from '#db/postgres.ts';
import { createSqliteDialect } from '#db/sqlite.ts';
import type { Database, Tables } from '#db/tables.ts';
import { createDatabase, databases } from '#test/support/databases.ts';

for (const database of databases) {
  test(`a failed migration changes nothing, on ${database}`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-migrate-'));
    const { url, drop } = await createDatabase(database);
    const dialect =
      url === null ? createSqliteDialect(join(folder, 'a.db')) : createPostgresDialect(url, 2);
    const db: Database = new Kysely<Tables>({ dialect });
    t.after(async () => {
      await db.destroy();
      await drop();
      await rm(folder, { recursive: true });
    });
    // A late migration stumbles over this table, after twelve others have run.
    await sql`create table usage_names (ref integer)`.execute(db);
    await assert.rejects(migrate(db), /usage_names/);
    const names = (await db.introspection.getTables()).map(({ name }) => name);
    assert.deepEqual(names, ['usage_names']);
    await sql`drop table usage_names`.execute(db);
    await migrate(db);
    assert.equal(await isMigrated(db), true);
  });
}
