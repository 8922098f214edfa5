// A migration that fails or is interrupted changes nothing, so the next start begins anew.

import assert from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Kysely, sql } from 'kysely';
import { checkMigrated, migrate, migrationNames } from '#db/migrate.ts';
import { openDatabase, openExistingDatabase } from '#db/open.ts';
import { createPostgresDialect } from '#db/postgres/postgres.ts';
import { createSqliteDialect } from '#db/sqlite/sqlite.ts';
import type { Database, Tables } from '#db/tables/tables.ts';
import { bothDatabases, createDatabase } from '#test/support/databases.ts';

for (const database of bothDatabases) {
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
    await checkMigrated(db);
  });

  test(`a database of a newer version is refused and not changed, on ${database}`, async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'millrace-migrate-'));
    const { url, drop } = await createDatabase(database);
    t.after(async () => {
      await drop();
      await rm(dataDir, { recursive: true });
    });
    const options = { url, poolSize: 2, dataDir };
    const db = await openDatabase(options);
    await sql`insert into kysely_migration values ('9999-later', '2030-01-01')`.execute(db);
    await db.destroy();
    const refusal = new RegExp(
      `can't be used: it was used by a newer version .* is 9999-later, .* up to ${migrationNames.at(-1)}\\.`,
    );
    await assert.rejects(openDatabase(options), refusal);
    await assert.rejects(openExistingDatabase(options), refusal);
  });
}
