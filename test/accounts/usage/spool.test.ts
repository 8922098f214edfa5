// The file that holds usage rows while PostgreSQL is unavailable: bounded, ordered, and safe against kill -9.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { pino } from 'pino';
import { createOutageWriter } from '#accounts/usage/writing/outage-writer.ts';
import { openSpool } from '#accounts/usage/writing/spool.ts';
import { createUsageWriter, type UsageWriter } from '#accounts/usage/writing/writer.ts';
import { openDatabase } from '#db/open.ts';
import type { UsageRequestRow } from '#db/tables/usage-rows.ts';
import {
  createDatabase as createTestDatabase,
  noPostgres,
  stopOwnPostgres,
} from '#test/support/databases.ts';
import { endedRow } from '#test/support/usage/usage.ts';

const log = pino({ level: 'silent' });

function newFile(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-spool-'));
  context.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'usage-spool.db');
}

/** A database that takes rows while `isUp` is set. */
function createDatabase() {
  const state = { isUp: false, batches: [] as UsageRequestRow[][] };
  const writer: UsageWriter = {
    prepare() {},
    async write(rows) {
      if (!state.isUp) throw new Error('the database is away');
      state.batches.push([...rows]);
    },
    close: async () => {},
  };
  return { state, writer };
}

test('rows leave the spool in order, the last state of each, and new rows queue behind them', async (context) => {
  const { state, writer: database } = createDatabase();
  const writer = createOutageWriter(database, openSpool(newFile(context), 2 ** 24), log);
  context.after(() => writer.close());
  const [first, second, third] = [endedRow(), endedRow(), endedRow()];
  await writer.write([{ ...first, status: 'running', process: 'p' }, second]);
  await writer.write([first]);
  await assert.rejects(writer.drain());
  state.isUp = true;
  await writer.write([third]);
  assert.deepEqual(state.batches, []);
  await writer.drain();
  assert.deepEqual(state.batches, [[second, first, third]]);
  await writer.write([first]);
  assert.deepEqual(state.batches.at(-1), [first]);
});

test('a row that changes while it is written stays', async (context) => {
  const spool = openSpool(newFile(context), 2 ** 24);
  context.after(() => spool.close());
  const row = endedRow();
  spool.put([{ ...row, status: 'running' }]);
  const read = spool.first(10);
  spool.put([row]);
  spool.delete(read);
  assert.deepEqual(
    spool.first(10).map((one) => one.row),
    [row],
  );
});

test('a full spool refuses rows, keeps those it has, and has room once they are written', async (context) => {
  const file = newFile(context);
  const maxBytes = 2 ** 20;
  const spool = openSpool(file, maxBytes);
  const batch = () => Array.from({ length: 100 }, () => endedRow());
  let stored = 0;
  assert.throws(
    () => {
      for (;;) {
        spool.put(batch());
        stored += 100;
      }
    },
    { code: 'disk_full' },
  );
  assert(stored > 1000, `${stored} rows`);
  assert.equal(spool.count(), stored);
  spool.put(spool.first(1).map(({ row }) => row));
  assert.equal(spool.count(), stored);
  spool.close();
  assert(statSync(file).size <= maxBytes);
  const again = openSpool(file, maxBytes);
  context.after(() => again.close());
  assert.equal(again.count(), stored);
  again.delete(again.first(stored));
  again.put(batch());
  assert.equal(again.count(), 100);
});

test('a row that PostgreSQL refuses is set aside and the rows around it are written', {
  skip: noPostgres,
}, async (context) => {
  const { url, drop } = await createTestDatabase('postgres');
  const file = newFile(context);
  const db = await openDatabase({ url, poolSize: 2, dataDir: dirname(file) });
  const spool = openSpool(file, 2 ** 24);
  const lines: string[] = [];
  const writer = createOutageWriter(
    createUsageWriter(db),
    spool,
    pino({ level: 'error' }, { write: (line) => lines.push(line) }),
  );
  context.after(async () => {
    await writer.close();
    await db.destroy();
    await drop();
    await stopOwnPostgres();
  });
  const rows = Array.from({ length: 300 }, () => endedRow());
  // No text of PostgreSQL has a NUL, and no bigint is this large.
  const faulty = [
    { ...endedRow(), model: 'a\0b' },
    { ...endedRow(), completion_tokens: 1e19 },
  ];
  spool.put([...rows.slice(0, 7), ...faulty.slice(0, 1), ...rows.slice(7), ...faulty.slice(1)]);
  await writer.drain();
  assert.equal(spool.count(), 0);
  assert.equal(writer.refused(), 2);
  const { count } = await db
    .selectFrom('usage_requests')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  assert.equal(Number(count), 300);
  assert.deepEqual(
    lines.map((line) => {
      const { id, sqlState } = JSON.parse(line) as { id: string; sqlState: string };
      return [id, sqlState];
    }),
    [
      [faulty[0]?.id, '22021'],
      [faulty[1]?.id, '22003'],
    ],
  );
  await writer.write([endedRow()]);
  assert.equal(spool.count(), 0);
});

test('an error that is not due to a row keeps all rows', async (context) => {
  const spool = openSpool(newFile(context), 2 ** 24);
  for (const code of ['57P01', '42P01', '53100', '40001', undefined]) {
    const database: UsageWriter = {
      prepare() {},
      write: () => Promise.reject(Object.assign(new Error('away'), { code })),
      close: async () => {},
    };
    const writer = createOutageWriter(database, spool, log);
    await writer.write([endedRow()]);
    await assert.rejects(writer.drain());
    assert.equal(writer.refused(), 0);
  }
  assert.equal(spool.count(), 5);
  spool.close();
});

test('the rows set aside are bounded', (context) => {
  const file = newFile(context);
  const spool = openSpool(file, 2 ** 24);
  spool.put(Array.from({ length: 1005 }, () => endedRow()));
  for (const row of spool.first(1005)) spool.setAside(row, '22003');
  assert.equal(spool.count(), 0);
  spool.close();
  const stored = new DatabaseSync(file);
  context.after(() => stored.close());
  assert.equal({ ...stored.prepare('select count(*) as n from refused').get() }.n, 1000);
});
