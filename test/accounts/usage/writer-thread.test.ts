// The thread that writes usage to SQLite: it may die at any moment, it shares the database with a main thread
// that writes too, and it keeps the write-ahead log small.

import assert from 'node:assert';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rename, stat } from 'node:fs/promises';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { sql } from 'kysely';
import { pino } from 'pino';
import { batchRows, createUsageRecorder } from '#accounts/usage/recorder.ts';
import {
  createUsageWriter,
  createUsageWriterThread,
  type UsageWriter,
} from '#accounts/usage/writing/writer.ts';
import { sqliteFile } from '#db/open.ts';
import { propertySeed } from '#test/support/property-seed.ts';
import { createRandom } from '#test/support/random.ts';
import { until } from '#test/support/until.ts';
import {
  accountId,
  assertAgreement,
  endedRow,
  openTestUsage,
  serveOne,
  type TestUsage,
} from '#test/support/usage/usage.ts';

const openThread = ({ dataDir }: TestUsage) => createUsageWriterThread(sqliteFile(dataDir));
const openRecorder = ({ db, clock }: TestUsage, writer: UsageWriter) =>
  createUsageRecorder(
    { db, clock, log: pino({ level: 'silent' }), writer },
    { singleServer: false },
  );
const manyRows = (count = batchRows) => Array.from({ length: count }, () => endedRow());

test(`a thread that is killed while it writes loses no row and writes none twice (seed ${propertySeed})`, async (context) => {
  const made = await openTestUsage('sqlite');
  const batch = openThread(made);
  const usage = openRecorder(made, batch);
  const random = createRandom(propertySeed);
  const kills = 12;
  let failed = 0;
  for (let kill = 0; kill < kills; kill++) {
    serveOne(usage);
    await usage.flush();
    for (let turn = 0; turn < 3 * batchRows; turn++) serveOne(usage);
    const flushed = usage.flush().catch(() => failed++);
    // Within a batch, between two, or after the last.
    const at = performance.now() + random(20);
    while (performance.now() < at) await nextTurn();
    await batch.close();
    await flushed;
  }
  await usage.stop();
  context.diagnostic(`${failed} of ${kills} kills met a batch`);
  assert(failed > 0);
  assert.equal((await made.rows()).length, kills * (3 * batchRows + 1));
  await assertAgreement(made.db);
});

test('rows that arrive while the thread starts are written on the main thread, later ones are not', async () => {
  const made = await openTestUsage('sqlite');
  const here = createUsageWriter(made.db);
  let writtenHere = 0;
  const fallback: UsageWriter = {
    ...here,
    async write(rows) {
      writtenHere += rows.length;
      await here.write(rows);
    },
  };
  const batch = createUsageWriterThread(sqliteFile(made.dataDir), { fallback });
  batch.prepare();
  await batch.write([endedRow()]);
  assert.equal(writtenHere, 1);
  let all = 1;
  await until('the thread writes', async () => {
    const before = writtenHere;
    await batch.write([endedRow()]);
    all++;
    return writtenHere === before;
  });
  await batch.write([endedRow()]);
  await batch.close();
  assert.ok(writtenHere < all);
  assert.equal((await made.rows()).length, all + 1);
  await assertAgreement(made.db);
});

test('a batch that failed is written whole, and once, by the next attempt', async () => {
  const made = await openTestUsage('sqlite');
  const usage = openRecorder(made, openThread(made));
  serveOne(usage);
  await usage.flush();
  // The rows are written before the sums, so this fails in the middle of a batch.
  await sql`create trigger away before insert on spend
    begin select raise(abort, 'the disk is full'); end`.execute(made.db);
  for (let turn = 0; turn < 200; turn++) serveOne(usage);
  await assert.rejects(usage.flush(), /the disk is full/);
  assert.equal((await made.rows()).length, 1);
  assert.equal(usage.status().pending, 200);
  await sql`drop trigger away`.execute(made.db);
  await until('it tries again by itself', () => usage.status().pending === 0);
  await usage.stop();
  assert.equal((await made.rows()).length, 201);
  await assertAgreement(made.db);
});

test('a database that is missing is not created, and is written to once it is back', async () => {
  const made = await openTestUsage('sqlite');
  const usage = openRecorder(made, openThread(made));
  await rename(made.dataDir, `${made.dataDir}-away`);
  serveOne(usage);
  await assert.rejects(usage.flush(), /has ended/);
  assert(!existsSync(made.dataDir));
  await rename(`${made.dataDir}-away`, made.dataDir);
  await until('it tries again by itself', () => usage.status().pending === 0);
  await usage.stop();
  assert.equal((await made.rows()).length, 1);
  await assertAgreement(made.db);
});

test('a batch waits for another writer', async () => {
  const made = await openTestUsage('sqlite');
  const batch = openThread(made);
  await batch.write(manyRows());
  let isWritten = false;
  const written = await made.db.transaction().execute(async (tx) => {
    await tx.insertInto('accounts').values({ id: accountId, name: 'x', created_at: 0 }).execute();
    const writing = batch.write(manyRows()).then(() => {
      isWritten = true;
    });
    const at = performance.now() + 100;
    while (performance.now() < at) await nextTurn();
    assert(!isWritten, 'both wrote at once');
    return { writing };
  });
  await written.writing;
  assert.equal((await made.rows()).length, 2 * batchRows);
  await batch.close();
});

test('while batches are written one after the other, the main thread writes too', async () => {
  const made = await openTestUsage('sqlite');
  const { db } = made;
  await db.insertInto('accounts').values({ id: accountId, name: '0', created_at: 0 }).execute();
  const batch = openThread(made);
  let batches = 0;
  let isDone = false;
  const writing = (async () => {
    for (; !isDone; batches++) await batch.write(manyRows());
  })();
  const rename = (name: string) => ({ name });
  const turns = 40;
  for (let turn = 0; turn < turns || batches <= 5; turn++) {
    if (turn % 2 === 0) {
      await db
        .updateTable('accounts')
        .set(rename(`${turn}`))
        .where('id', '=', accountId)
        .execute();
    } else {
      await db.transaction().execute(async (tx) => {
        const { name } = await tx.selectFrom('accounts').select('name').executeTakeFirstOrThrow();
        await tx
          .updateTable('accounts')
          .set(rename(`${name}+`))
          .execute();
      });
    }
    await nextTurn();
  }
  isDone = true;
  await writing;
  await batch.close();
  assert.equal((await made.rows()).length, batches * batchRows);
  await assertAgreement(db);
});

test('the write-ahead log stays small', async (context) => {
  const made = await openTestUsage('sqlite');
  const batch = openThread(made);
  for (let turn = 0; turn < 120; turn++) {
    await batch.write(manyRows());
    // A reader, whose snapshots a checkpoint has to respect.
    await made.db.selectFrom('spend').selectAll().execute();
  }
  const { size } = await stat(`${sqliteFile(made.dataDir)}-wal`);
  context.diagnostic(`${size} bytes`);
  assert(size < 8 * 2 ** 20, `${size} bytes`);
  await batch.close();
});

test('a stop ends the thread and its connection', async () => {
  const made = await openTestUsage('sqlite');
  const usage = openRecorder(made, openThread(made));
  serveOne(usage);
  await usage.stop();
  await made.db.destroy();
  // The last connection that is closed puts the log away.
  assert(existsSync(sqliteFile(made.dataDir)));
  assert(!existsSync(`${sqliteFile(made.dataDir)}-wal`));
});

test('a thread that was not closed keeps no process alive', async () => {
  const { dataDir, rows } = await openTestUsage('sqlite');
  const path = new URL('../../../src/accounts/usage/writing/writer.ts', import.meta.url).href;
  const code = `
    const { createUsageWriterThread } = await import(${JSON.stringify(path)});
    const batch = createUsageWriterThread(${JSON.stringify(sqliteFile(dataDir))});
    await batch.write([${JSON.stringify(endedRow())}]);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: 'inherit',
    timeout: 30_000,
  });
  const exitCode = await new Promise((resolve) => child.once('exit', resolve));
  assert.equal(exitCode, 0);
  assert.equal((await rows()).length, 1);
});
