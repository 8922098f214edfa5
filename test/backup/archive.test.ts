// What a restore refuses, what it keeps aside, and what a crash in the middle leaves, without a server.

import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Kysely } from 'kysely';
import { Migrator } from 'kysely/migration';
import { createBackup } from '#backup/create.ts';
import { commitRestore, finishRestore } from '#backup/pending-restore.ts';
import { restoreBackup, verifyBackup } from '#backup/restore.ts';
import { migrationNames } from '#db/migrate.ts';
import * as house from '#db/migrations/0001-house.ts';
import { openDatabase } from '#db/open.ts';
import { createSqliteDialect } from '#db/sqlite/sqlite.ts';
import { lockData } from '#lib/computer/data-lock.ts';
import { makeFolder, runMillrace } from '#test/support/process.ts';

const watcher = { onProgress: () => {}, signal: new AbortController().signal };
const options = { ...watcher, force: false, now: new Date('2026-11-16T12:00:00Z') };

/** A data directory whose account is called `name`. */
async function makeData(name: string): Promise<string> {
  const dataDir = makeFolder();
  const db = await openDatabase({ url: null, poolSize: 1, dataDir });
  await db
    .insertInto('accounts')
    .values({
      id: 'a',
      name,
      created_at: 0,
      requests_per_minute: null,
      tokens_per_minute: null,
      concurrent_requests: null,
      monthly_budget_nano: null,
    })
    .execute();
  await db.destroy();
  writeFileSync(join(dataDir, 'secret.key'), `key of ${name}\n`, { mode: 0o600 });
  return dataDir;
}

/** As the first release left it. */
async function makeOldData(): Promise<string> {
  const dataDir = makeFolder();
  const db = new Kysely<unknown>({ dialect: createSqliteDialect(join(dataDir, 'millrace.db')) });
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ '0001-house': house }) },
  });
  assert.equal((await migrator.migrateToLatest()).error, undefined);
  await db.destroy();
  return dataDir;
}

async function backUp(dataDir: string): Promise<string> {
  const file = join(makeFolder(), 'backup.tar.gz');
  await createBackup({ dataDir, database: 'sqlite', version: '9.9.9' }, file, options);
  return file;
}

function readState(dataDir: string) {
  const database = new DatabaseSync(join(dataDir, 'millrace.db'), { readOnly: true });
  const account = database.prepare('select name from accounts').get();
  database.close();
  return [account?.name, readFileSync(join(dataDir, 'secret.key'), 'utf8').trim()];
}

const stateOf = (name: string) => [name, `key of ${name}`];

function changeDatabase(dataDir: string, sql: string): void {
  const database = new DatabaseSync(join(dataDir, 'millrace.db'));
  database.exec(sql);
  database.close();
}

describe('an archive', () => {
  test('cut short anywhere is refused, and the state stays', async () => {
    const file = await backUp(await makeData('new'));
    const dataDir = await makeData('old');
    const bytes = readFileSync(file);
    for (const part of [0, 0.01, 0.3, 0.7, 0.99]) {
      writeFileSync(file, bytes.subarray(0, Math.floor(bytes.length * part)));
      await assert.rejects(
        restoreBackup(file, dataDir, { ...options, force: true }),
        /is damaged: |is not a Millrace backup/,
        `${part}`,
      );
      assert.deepEqual(readState(dataDir), stateOf('old'));
    }
    assert.deepEqual(
      readdirSync(dataDir).filter((name) => name.startsWith('.')),
      [],
    );
  });

  test('with a changed byte in the database is refused by its checksum', async () => {
    const file = await backUp(await makeData('new'));
    const tar = gunzipSync(readFileSync(file));
    const at = tar.lastIndexOf('new', tar.lastIndexOf('secret.key'));
    tar[at] = (tar[at] as number) ^ 1;
    writeFileSync(file, gzipSync(tar));
    const restored = join(makeFolder(), 'data');
    await assert.rejects(restoreBackup(file, restored, options), /differs from its checksum/);
    assert.deepEqual(readdirSync(restored), ['server.lock']);
    await assert.rejects(verifyBackup(file, watcher), /differs from its checksum/);
  });

  test('of a newer schema is refused by name, one of an older schema is migrated', async () => {
    const dataDir = await makeData('new');
    changeDatabase(dataDir, "insert into kysely_migration values ('9999-future', '2030-01-01')");
    await assert.rejects(
      restoreBackup(await backUp(dataDir), makeFolder(), options),
      /made by Millrace 9\.9\.9 with the database schema 9999-future, but this version knows schemas up to \d{4}-/,
    );
    const old = await makeOldData();
    const restored = makeFolder();
    const { manifest } = await restoreBackup(await backUp(old), restored, options);
    assert.equal(manifest.schema, '0001-house');
    await (await openDatabase({ url: null, poolSize: 1, dataDir: restored })).destroy();
    assert.deepEqual(readMigrations(restored), migrationNames);
  });

  test('of a damaged database is never made', async () => {
    const dataDir = await makeData('old');
    const file = join(dataDir, 'millrace.db');
    const bytes = readFileSync(file);
    bytes.fill(0xff, 8192, 40_960);
    writeFileSync(file, bytes);
    const target = join(makeFolder(), 'backup.tar.gz');
    const source = { dataDir, database: 'sqlite', version: '9.9.9' } as const;
    await assert.rejects(createBackup(source, target, options), /can't be copied: /);
    assert(!existsSync(target));
  });
});

const readMigrations = (dataDir: string) => {
  const database = new DatabaseSync(join(dataDir, 'millrace.db'), { readOnly: true });
  const rows = database.prepare('select name from kysely_migration order by name').all();
  database.close();
  return rows.map(({ name }) => String(name));
};

describe('a restore', () => {
  test('replaces state only with --force, and keeps all of it aside', async () => {
    const file = await backUp(await makeData('new'));
    const dataDir = await makeData('old');
    writeFileSync(join(dataDir, 'host-id'), 'old host');
    writeFileSync(join(dataDir, 'millrace.db-wal'), '');
    await assert.rejects(
      restoreBackup(file, dataDir, options),
      /holds state already \(millrace\.db, secret\.key, host-id\)\. .*--force/,
    );
    assert.deepEqual(readState(dataDir), stateOf('old'));
    const { aside } = await restoreBackup(file, dataDir, { ...options, force: true });
    assert.equal(aside, join(dataDir, 'before-restore-2026-11-16T12-00-00-000Z'));
    assert(existsSync(join(dataDir, 'keep-orphans')), 'later machines must survive the restore');
    assert.deepEqual(readState(dataDir), stateOf('new'));
    assert(!existsSync(join(dataDir, 'host-id')) && !existsSync(join(dataDir, 'millrace.db-wal')));
    assert.deepEqual(readState(aside), stateOf('old'));
    assert.equal(readFileSync(join(aside, 'host-id'), 'utf8'), 'old host');
  });

  test('is refused while the data directory is locked', async () => {
    const file = await backUp(await makeData('new'));
    const dataDir = makeFolder();
    const lock = lockData(dataDir);
    await assert.rejects(restoreBackup(file, dataDir, options), /A server is running on /);
    lock.release();
    await restoreBackup(file, dataDir, options);
  });

  test('that dies between any two renames is finished by the next start', async () => {
    const fresh = await makeData('new');
    for (let renamed = 0; renamed <= 4; renamed++) {
      const dataDir = await makeData('old');
      writeFileSync(join(dataDir, 'millrace.db-wal'), 'an old log');
      const staged = join(dataDir, '.restoring-x');
      mkdirSync(staged);
      const files = ['millrace.db', 'secret.key'];
      for (const name of files) cpSync(join(fresh, name), join(staged, name));
      commitRestore(dataDir, staged, { files, aside: 'aside' });
      // The renames of finishRestore, as far as it got.
      const aside = join(dataDir, 'aside');
      mkdirSync(aside);
      const renames = [
        [join(dataDir, 'millrace.db-wal'), join(aside, 'millrace.db-wal')],
        [join(dataDir, 'millrace.db'), join(aside, 'millrace.db')],
        [join(dataDir, '.restored', 'millrace.db'), join(dataDir, 'millrace.db')],
        [join(dataDir, 'secret.key'), join(aside, 'secret.key')],
      ] as const;
      for (const [from, to] of renames.slice(0, renamed)) renameSync(from, to);
      finishRestore(dataDir);
      finishRestore(dataDir);
      assert.deepEqual(readState(dataDir), stateOf('new'), `${renamed}`);
      assert.equal(readFileSync(join(aside, 'secret.key'), 'utf8'), 'key of old\n');
      assert.equal(readFileSync(join(aside, 'millrace.db-wal'), 'utf8'), 'an old log');
      assert(!existsSync(join(dataDir, '.restored')));
    }
  });
});

describe('the command', () => {
  test('names a folder that does not exist', async () => {
    const folder = join(makeFolder(), 'missing');
    const dataDir = await makeData('old');
    const refused = await runMillrace(['backup', join(folder, 'a.tar.gz'), '--data-dir', dataDir]);
    assert.deepEqual(
      [refused.code, refused.stderr],
      [1, `The folder ${folder} does not exist. Create it, or name another file.\n`],
    );
  });

  test('replaces a file only with --force, and leaves no temporary files', async () => {
    const dataDir = await makeData('old');
    const file = await backUp(dataDir);
    const before = readFileSync(file);
    const refused = await runMillrace(['backup', file, '--data-dir', dataDir]);
    assert.deepEqual(
      [refused.code, refused.stderr],
      [1, `${file} exists already. Choose another name, or add --force to replace it.\n`],
    );
    assert.deepEqual(readFileSync(file), before);
    const forced = await runMillrace(['backup', file, '--data-dir', dataDir, '--force']);
    assert.equal(forced.code, 0, forced.stderr);
    assert.deepEqual(readdirSync(join(file, '..')), ['backup.tar.gz']);
    const missing = await runMillrace(['backup', `${file}2`, '--data-dir', makeFolder()]);
    assert.match(missing.stderr, /^There is no database at /);
  });

  test('saves the keys of a PostgreSQL installation and says how to dump its database', async () => {
    const dataDir = makeFolder();
    writeFileSync(join(dataDir, 'secret.key'), 'sealed\n');
    const file = join(makeFolder(), 'keys.tar.gz');
    const env = { DATABASE_URL: 'postgres://me:hidden@db.example.com/millrace' };
    const saved = await runMillrace(['backup', file, '--data-dir', dataDir], { env });
    assert.equal(saved.code, 0, saved.stderr);
    assert.match(saved.stdout, /^Saved secret\.key to /);
    const address = 'postgres://me@db.example.com/millrace';
    const dump = `pg_dump --format=custom --no-owner --file=millrace.dump '${address}'`;
    assert(saved.stdout.includes(`\n  ${dump}\n`), saved.stdout);
    const restored = makeFolder();
    const said = await runMillrace(['restore', file, '--data-dir', restored], { env });
    assert.equal(said.code, 0, said.stderr);
    assert(said.stdout.includes(`pg_restore --clean --if-exists --no-owner --dbname='${address}'`));
    assert.equal(readFileSync(join(restored, 'secret.key'), 'utf8'), 'sealed\n');
    assert(!`${saved.stdout}${said.stdout}`.includes('hidden'));
  });
});
