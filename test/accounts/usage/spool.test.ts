// The file that holds usage rows while PostgreSQL is unavailable: bounded, ordered, and safe against kill -9.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pino } from 'pino';
import { createOutageWriter } from '#accounts/usage/outage-writer.ts';
import { openSpool } from '#accounts/usage/spool.ts';
import type { UsageWriter } from '#accounts/usage/writer.ts';
import type { UsageRequestRow } from '#db/tables.ts';
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
  spool.close();
  assert(statSync(file).size <= maxBytes);
  const again = openSpool(file, maxBytes);
  context.after(() => again.close());
  assert.equal(again.count(), stored);
  again.delete(again.first(stored));
  again.put(batch());
  assert.equal(again.count(), 100);
});
