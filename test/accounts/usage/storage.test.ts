// The bound on the number of stored requests: people are warned, then the oldest go. Sums stay, names go with the rows.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { pino } from 'pino';
import { createUsageRequests } from '#accounts/usage/requests.ts';
import { bothDatabases } from '#test/support/databases.ts';
import { startTestServer } from '#test/support/server.ts';
import {
  accountId,
  assertAgreement,
  openRetention,
  openTestUsage,
  serveOne,
} from '#test/support/usage/usage.ts';

const dayMs = 86_400_000;
const other = 'c'.repeat(32);

for (const database of bothDatabases) {
  describe(`the size of usage on ${database}`, () => {
    async function open() {
      const opened = await openTestUsage(database);
      for (const id of [accountId, other]) {
        const account = { id, name: 'x', created_at: 0 };
        await opened.db.insertInto('accounts').values(account).execute();
      }
      return opened;
    }

    test('people are warned at 80%, once, and rows are only deleted beyond the bound', async () => {
      const opened = await open();
      const { usage, clock, rows, db } = opened;
      const logged: string[] = [];
      const log = pino({ level: 'warn' }, { write: (line) => logged.push(JSON.parse(line).msg) });
      const retention = openRetention(opened, { maxRows: 1000 }, log);
      const serve = async (count: number) => {
        for (let n = 0; n < count; n++) {
          clock.turn(1);
          serveOne(usage, n % 3 === 0 ? { accountId: other, keyId: null } : {});
        }
        await usage.flush();
        await retention.sweep();
      };
      await serve(799);
      assert.deepEqual([retention.storage.state, logged], ['ok', []]);
      await serve(1);
      await serve(1);
      assert.deepEqual(retention.storage, { rows: 801, max_rows: 1000, state: 'near' });
      assert.equal(logged.length, 1);
      assert.equal((await rows()).length, 801);
      await assertAgreement(db);

      const before = await rows();
      await serve(1400);
      assert.deepEqual(retention.storage, { rows: 1000, max_rows: 1000, state: 'full' });
      const left = await rows();
      assert.equal(left.length, 1000);
      const oldest = Math.min(...left.map(({ at }) => at));
      assert(
        before.every(({ at }) => at < oldest),
        'the oldest of both accounts are gone',
      );
      await serve(10);
      assert.equal(logged.length, 2, 'and the deletion is logged once');
      const { requests } = await db
        .selectFrom('usage_hours')
        .select(({ fn }) => fn.sum<number>('requests').as('requests'))
        .executeTakeFirstOrThrow();
      assert.equal(requests, 801 + 1400 + 10, 'sums stay');
    });

    test('names leave with their last row, and come back with the next', async () => {
      const opened = await open();
      const { usage, clock, db, rows } = opened;
      const retention = openRetention(opened, { requestDays: 10 });
      const names = async () =>
        (await db.selectFrom('usage_names').select('name').execute()).map(({ name }) => name);
      serveOne(usage, { model: 'short-lived' });
      await usage.flush();
      clock.turn(5 * dayMs);
      serveOne(usage, { model: 'lasting' });
      await usage.flush();
      clock.turn(8 * dayMs);
      await retention.sweep();
      const kept = await names();
      assert.deepEqual(
        ['short-lived', 'lasting', accountId].map((name) => kept.includes(name)),
        [false, true, true],
      );
      assert.deepEqual(
        (await rows()).map(({ model }) => model),
        ['lasting'],
      );
      const requests = createUsageRequests(db);
      const find = (model: string) => requests.page(accountId, { limit: 5, model });
      assert.deepEqual((await find('short-lived')).data, []);
      serveOne(usage, { model: 'short-lived' });
      await usage.flush();
      assert.equal((await find('short-lived')).data.length, 1);
    });

    test('a name that is used every day is never dropped, however old it is', async () => {
      const opened = await open();
      const { usage, clock, rows } = opened;
      const retention = openRetention(opened, { requestDays: 2 });
      for (let day = 0; day < 12; day++) {
        serveOne(usage);
        await usage.flush();
        clock.turn(dayMs);
        await retention.sweep();
      }
      const left = await rows();
      assert(left.length > 0 && left.every((row) => row.model === 'm' && row.backend === 'one'));
    });
  });
}

test('metrics and the dashboard’s endpoint say how full it is', async () => {
  const server = await startTestServer({ config: { usage: { max_rows: 5000 } } });
  const owner = await server.join();
  const response = await owner('/dashboard/api/usage/storage');
  assert.deepEqual(await response.json(), { rows: 0, max_rows: 5000, state: 'ok' });
  const metrics = await (await server.fetch('/metrics')).text();
  assert.match(metrics, /^millrace_usage_rows 0$/m);
  assert.match(metrics, /^millrace_usage_rows_max 5000$/m);
});
