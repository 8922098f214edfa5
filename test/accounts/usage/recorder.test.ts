// The life of a usage row: batches, long requests, servers that vanish, a database that is gone, and age.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readMonthlySpend } from '#accounts/usage/monthly-spend.ts';
import { toMonth } from '#accounts/usage/periods.ts';
import { createUsageWriter } from '#accounts/usage/writing/writer.ts';
import { bothDatabases } from '#test/support/databases.ts';
import { until } from '#test/support/until.ts';
import { failing, severed } from '#test/support/usage/failing-writer.ts';
import {
  accountId,
  assertAgreement,
  facts,
  keyId,
  nextId,
  openRetention,
  openTestUsage,
  serveOne,
} from '#test/support/usage/usage.ts';

const dayMs = 86_400_000;

for (const database of bothDatabases) {
  describe(`usage rows on ${database}`, () => {
    test('a row is written soon after its request ended, and the slowest write is reported', async () => {
      const { usage, rows } = await openTestUsage(database);
      serveOne(usage);
      await until('the row is there', async () => (await rows()).length === 1);
      await until('the write is reported', () => usage.status().slowestMs > 0);
    });

    test('a row has the caller, the model, the backend, the tokens, the times and the cost', async () => {
      const { usage, rows, clock, db } = await openTestUsage(database);
      const given = facts({ userId: null, operation: 'text_completion', model: 'asked' });
      const entry = usage.open(given);
      entry.progress({ servedModel: 'served', backend: 'one' });
      entry.progress({ promptTokens: 3, completionTokens: 1, firstTokenMs: 12.4, costNano: 30 });
      entry.close({
        status: 'failed',
        code: 'upstream_error',
        durationMs: 99.6,
        completionTokens: 2,
        costNano: 40,
      });
      await usage.flush();
      assert.deepEqual(await rows(), [
        {
          id: given.id,
          account_id: accountId,
          key_id: keyId,
          user_id: null,
          operation: 'text_completion',
          model: 'asked',
          served_model: 'served',
          backend: 'one',
          at: clock.now(),
          status: 'failed',
          code: 'upstream_error',
          prompt_tokens: 3,
          completion_tokens: 2,
          cached_tokens: 0,
          first_token_ms: 12,
          duration_ms: 100,
          cost_nano: 40,
          reserved: 0,
          process: null,
        },
      ]);
      await assertAgreement(db);
    });

    test('rows, hours and months agree across keys, models, outcomes and the turn of a month', async () => {
      const { usage, clock, db, rows } = await openTestUsage(database);
      clock.turn(31 * dayMs - 90 * 60_000);
      for (let turn = 0; turn < 600; turn++) {
        const keys = [keyId, 'c'.repeat(32), null];
        const entry = usage.open(facts({ keyId: keys[turn % 3] ?? null, model: `m${turn % 2}` }));
        entry.progress({ promptTokens: turn, completionTokens: turn % 7, costNano: turn * 3 });
        const status = (['done', 'aborted', 'failed'] as const)[turn % 5] ?? 'done';
        entry.close({ status, code: null, durationMs: turn, backend: `b${turn % 4}` });
        clock.turn(20_000);
      }
      await usage.flush();
      assert.equal((await rows()).length, 600);
      await assertAgreement(db);
      const [january, february] = [
        await readMonthlySpend(db, accountId, null, '2026-01'),
        await readMonthlySpend(db, accountId, null, '2026-02'),
      ];
      assert.equal(january.requests + february.requests, 600);
      assert(january.requests > 0 && february.requests > 0);
      assert.equal(january.costNano + february.costNano, (599 * 600 * 3) / 2);
      const ofKey = await readMonthlySpend(db, accountId, keyId, '2026-01');
      assert(ofKey.requests > 0 && ofKey.requests < january.requests);
      assert.deepEqual(await readMonthlySpend(db, 'nobody', null, '2026-01'), {
        costNano: 0,
        tokens: 0,
        requests: 0,
      });
      assert.equal(toMonth(clock.now()), '2026-02');
    });

    test('an entry closes once, and later calls change nothing', async () => {
      const { usage, rows, db } = await openTestUsage(database);
      const entry = usage.open(facts());
      entry.close({ status: 'done', code: null, durationMs: 1, completionTokens: 4 });
      entry.close({ status: 'failed', code: 'x', durationMs: 2, completionTokens: 9 });
      entry.progress({ completionTokens: 10 });
      await usage.flush();
      const [row] = await rows();
      assert.deepEqual([row?.status, row?.completion_tokens], ['done', 4]);
      await assertAgreement(db);
    });

    test('values that no database accepts do not block other rows', async () => {
      const { usage, rows } = await openTestUsage(database);
      for (const strange of [Number.NaN, Number.POSITIVE_INFINITY, -5, 1.5, 1e300]) {
        const code = '\u0000 or a whole sentence';
        usage.open(facts()).close({
          status: 'failed',
          code,
          durationMs: strange,
          promptTokens: strange,
        });
      }
      await usage.flush();
      const written = await rows();
      assert.equal(written.length, 5);
      assert(written.every(({ code, prompt_tokens }) => code === 'other' && prompt_tokens >= 0));
    });

    test('a request that takes over a second is written while it runs, and counted when it ends', async () => {
      const { usage, clock, rows, db } = await openTestUsage(database);
      const entry = usage.open(facts());
      entry.progress({ backend: 'one', promptTokens: 8, completionTokens: 1 });
      clock.turn(900);
      await usage.flush();
      assert.deepEqual(await rows(), []);
      clock.turn(100);
      await usage.flush();
      const [first] = await rows();
      assert.deepEqual(
        [first?.status, first?.completion_tokens, first?.duration_ms],
        ['running', 1, 1000],
      );
      await assertAgreement(db);
      entry.progress({ completionTokens: 50 });
      clock.turn(1000);
      await usage.flush();
      assert.equal((await rows())[0]?.completion_tokens, 50);
      entry.close({ status: 'aborted', code: null, durationMs: 2100, completionTokens: 55 });
      await usage.flush();
      const [last, ...others] = await rows();
      assert.deepEqual([last?.status, last?.completion_tokens, others], ['aborted', 55, []]);
      await assertAgreement(db);
      assert.equal((await readMonthlySpend(db, accountId, keyId, '2026-01')).requests, 1);
    });

    test('ended requests are written without those that still run, which are written once a second', async () => {
      const { db, another, clock } = await openTestUsage(database);
      let writes = 0;
      const usage = another(
        {},
        failing(db, () => {
          writes++;
          return null;
        }),
      );
      const long = usage.open(facts());
      clock.turn(5000);
      const begun = performance.now();
      const batches = 20;
      for (let turn = 0; turn < batches; turn++) {
        long.progress({ completionTokens: turn });
        serveOne(usage);
        const before = writes;
        await until('it is written', () => writes > before && usage.status().pending === 0);
      }
      const seconds = Math.ceil((performance.now() - begun) / 1000);
      assert(writes <= batches + seconds, `${writes} writes in ${seconds} s`);
      long.close({ status: 'done', code: null, durationMs: 1 });
      await usage.flush();
      await assertAgreement(db);
    });

    test('requests that a dead server left running are interrupted and counted once', async () => {
      const { another, clock, rows, db, usage } = await openTestUsage(database);
      let isGone = false;
      const killed = another(
        {},
        severed(db, () => isGone),
      );
      for (let turn = 0; turn < 3; turn++) {
        killed.open(facts()).progress({ promptTokens: 4, completionTokens: 6, costNano: 11 });
      }
      clock.turn(1000);
      await killed.flush();
      await usage.sweep();
      assert(
        (await rows()).every(({ status }) => status === 'running'),
        'it was taken for dead while it may live',
      );
      isGone = true;
      clock.turn(100_000);
      await Promise.all([usage.sweep(), another().sweep()]);
      await usage.sweep();
      const left = await rows();
      assert.deepEqual(
        left.map(({ status, code }) => [status, code]),
        Array(3).fill(['interrupted', 'server_lost']),
      );
      assert.deepEqual(await readMonthlySpend(db, accountId, keyId, '2026-01'), {
        costNano: 33,
        tokens: 30,
        requests: 3,
      });
      await assertAgreement(db);
      isGone = false;
    });

    test('a server that was presumed dead counts the rest once', async () => {
      const { another, clock, rows, db, usage } = await openTestUsage(database);
      const silent = another();
      const ids = [nextId(), nextId()];
      const [answered, waiting] = ids.map((id) => silent.open(facts({ id })));
      answered?.progress({ backend: 'one', completionTokens: 6, costNano: 11, firstTokenMs: 3 });
      clock.turn(1000);
      await silent.flush();
      clock.turn(100_000);
      await usage.sweep();
      assert((await rows()).every(({ status }) => status === 'interrupted'));
      await assertAgreement(db);
      answered?.progress({ completionTokens: 7 });
      await silent.flush();
      assert((await rows()).every(({ status }) => status === 'interrupted'));
      answered?.close({ status: 'done', code: null, durationMs: 5, promptTokens: 4, costNano: 20 });
      waiting?.progress({ backend: 'two', completionTokens: 1, costNano: 1 });
      waiting?.close({ status: 'aborted', code: null, durationMs: 5 });
      await silent.flush();
      // As after a commit whose answer was lost.
      await createUsageWriter(db).write(await rows());
      await usage.sweep();
      const last = new Map((await rows()).map((row) => [row.id, row]));
      assert.deepEqual(
        ids.map((id) => [last.get(id)?.status, last.get(id)?.code]),
        [
          ['done', null],
          ['aborted', null],
        ],
      );
      assert.deepEqual(await readMonthlySpend(db, accountId, keyId, '2026-01'), {
        costNano: 21,
        tokens: 12,
        requests: 2,
      });
      await assertAgreement(db);
    });

    test('a single server closes at its start what an earlier process left', async () => {
      const { another, clock, rows, db } = await openTestUsage(database);
      const killed = another();
      killed.open(facts()).progress({ completionTokens: 6 });
      clock.turn(1000);
      await killed.flush();
      const next = another({ singleServer: true });
      const own = next.open(facts());
      clock.turn(1000);
      await next.flush();
      await next.sweep();
      assert.deepEqual((await rows()).map(({ status }) => status).sort(), [
        'interrupted',
        'running',
      ]);
      own.close({ status: 'done', code: null, durationMs: 1 });
      await next.flush();
      await assertAgreement(db);
    });

    test('nothing is lost while the database is unavailable, and nothing counted twice afterwards', async () => {
      const { db, another, rows } = await openTestUsage(database);
      let isAway = true;
      const usage = another(
        {},
        failing(db, () => (isAway ? 'before' : null)),
      );
      for (let turn = 0; turn < 700; turn++) serveOne(usage);
      await assert.rejects(usage.flush());
      await assert.rejects(usage.flush());
      assert.equal(usage.status().pending, 700);
      isAway = false;
      // It writes again by itself.
      await until('it tries again', async () => usage.status().pending === 0);
      await usage.flush();
      assert.equal((await rows()).length, 700);
      await assertAgreement(db);
    });

    test('a full buffer drops the oldest rows and reports how many', async () => {
      const { db, another, rows } = await openTestUsage(database);
      let isAway = true;
      const usage = another(
        { maxPending: 100 },
        failing(db, () => (isAway ? 'before' : null)),
      );
      const ids = Array.from({ length: 150 }, () => serveOne(usage));
      await assert.rejects(usage.flush());
      assert.deepEqual(usage.status(), { open: 0, pending: 100, dropped: 50, slowestMs: 0 });
      isAway = false;
      await usage.flush();
      assert.deepEqual(
        (await rows()).map(({ id }) => id),
        ids.slice(50),
      );
      await assertAgreement(db);
    });

    test('a stop writes everything, and running requests end as aborted', async () => {
      const { usage, rows, db, clock } = await openTestUsage(database);
      for (let turn = 0; turn < 20; turn++) serveOne(usage);
      usage.open(facts()).progress({ completionTokens: 3 });
      clock.turn(500);
      await usage.stop();
      const written = await rows();
      assert.equal(written.length, 21);
      const { code, completion_tokens } = written.find(({ status }) => status === 'aborted') ?? {};
      assert.deepEqual([code, completion_tokens], ['server_stopped', 3]);
      assert.deepEqual(await db.selectFrom('usage_processes').selectAll().execute(), []);
      await assertAgreement(db);
    });

    test('rows and hours are deleted after the configured days, months never', async () => {
      const { usage, clock, db, rows } = await openTestUsage(database);
      await db.insertInto('accounts').values({ id: accountId, name: 'x', created_at: 0 }).execute();
      const retention = openRetention({ db, clock }, { requestDays: 10, hourDays: 30 });
      for (let turn = 0; turn < 1100; turn++) serveOne(usage);
      await usage.flush();
      clock.turn(9 * dayMs);
      const young = serveOne(usage);
      await usage.flush();
      clock.turn(2 * dayMs);
      await retention.sweep();
      assert.deepEqual(
        (await rows()).map(({ id }) => id),
        [young],
      );
      const hours = () => db.selectFrom('usage_hours').selectAll().execute();
      assert.equal((await hours()).length, 2);
      clock.turn(20 * dayMs);
      await retention.sweep();
      assert.equal((await hours()).length, 1);
      assert.equal((await readMonthlySpend(db, accountId, null, '2026-01')).requests, 1101);
    });

    test('writing a thousand rows leaves turns for responses', async () => {
      const { usage } = await openTestUsage(database);
      for (let turn = 0; turn < 100; turn++) serveOne(usage, { id: nextId() });
      await usage.flush();
      for (let turn = 0; turn < 1024; turn++) serveOne(usage, { id: nextId() });
      let turns = 0;
      let next: NodeJS.Immediate;
      const count = () => {
        turns++;
        next = setImmediate(count);
      };
      next = setImmediate(count);
      await usage.flush();
      clearImmediate(next);
      assert(turns >= 3, `the loop turned ${turns} times`);
    });
  });
}

test('the oldest waiting row is written 25 ms after its end, whatever arrives meanwhile', async (context) => {
  const { db, another, rows } = await openTestUsage('sqlite');
  const usage = another(
    {},
    failing(db, () => null),
  );
  context.mock.timers.enable({ apis: ['setTimeout'] });
  serveOne(usage);
  context.mock.timers.tick(20);
  serveOne(usage);
  context.mock.timers.tick(4);
  assert.equal((await rows()).length, 0);
  context.mock.timers.tick(1);
  // SQLite's one connection: this look waits for the write.
  await nextTurn();
  assert.equal((await rows()).length, 2);
  context.mock.timers.reset();
});
