// Several servers on one PostgreSQL and one Redis: what one lets in, the other knows. And what happens to
// what a server held when it dies, and to requests when Redis does.

import assert from 'node:assert';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRedisStore } from '#accounts/limits/redis-store.ts';
import type { LimitScope, ReserveResult } from '#accounts/limits/store.ts';
import { createProcesses } from '#accounts/usage/processes.ts';
import { openDatabase } from '#db/open.ts';
import { systemClock } from '#lib/clock.ts';
import { createHandClock, type HandClock } from '#test/support/clock.ts';
import {
  brief,
  complete,
  endless,
  listKeys,
  newKey,
  readError,
  startPricedModel,
  storm,
  worstCost,
} from '#test/support/limits/callers.ts';
import { month, newScope } from '#test/support/limits/scopes.ts';
import { redisIsMissing, startRedis, type TestRedis } from '#test/support/redis.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';
import { endedRow, insertRows } from '#test/support/usage/usage.ts';

const ask = { tokens: 1, costNano: 1 };
/** Key of the hash. The open requests have a key of their own. */
const toKey = ({ kind, id, accountId }: LimitScope) =>
  `millrace:limits:{${accountId}}:${kind}:${id}`;

describe('limits that replicas share', { skip: redisIsMissing }, () => {
  let redis: TestRedis;
  let clock: HandClock;
  let servers: [TestServer, TestServer];
  let session: SessionFetch;
  before(async () => {
    redis = await startRedis();
    clock = createHandClock();
    const config = {
      redis: { url: redis.url },
      cloud: { rate_limit: true, request_burst: 1 },
      models: await startPricedModel(),
    };
    const first = await startTestServer({ database: 'postgres', clock, config });
    servers = [first, await startTestServer({ on: first, clock, config })];
    session = await first.join();
  });
  after(() => redis.stop());

  test('of 200 concurrent requests to two servers, exactly as many are served as the rate allows', async () => {
    const key = await newKey(session, { requests_per_minute: 20 });
    const { granted } = await storm(servers, key, brief);
    assert.equal(granted.length, 20);
    clock.turn(3000);
    const again = await storm(servers, key, brief);
    assert.equal(again.granted.length, 1);
  });

  test('of 200 concurrent requests to two servers, exactly as many run as the concurrency limit allows', async () => {
    const key = await newKey(session, { concurrent_requests: 7 });
    const { granted } = await storm(servers, key, endless);
    assert.equal(granted.length, 7);
    await until('they have ended', async () => (await complete(servers[1], key, brief)).ok);
  });

  test('of 200 concurrent requests to two servers, only as many run as the budget covers', async () => {
    const worst = worstCost(endless);
    const key = await newKey(session, { monthly_budget: (6 * worst + worst - 1) / 1e9 });
    const { granted } = await storm(servers, key, endless);
    assert.equal(granted.length, 6);
    const spend = await until('all six are in the books', async () => {
      const row = (await listKeys(session)).find(({ id }) => id === key.id);
      return row?.spend.requests === 6 ? row.spend : null;
    });
    assert(spend.cost > 0 && spend.cost <= (key.limits.monthly_budget ?? 0));
  });

  test('the cloud API’s rate limit is per account, across servers', async () => {
    const [one, other] = servers;
    const list = (server: TestServer) =>
      server.fetch('/api/v1/instances', { headers: { authorization: `Bearer ${one.key}` } });
    clock.turn(1000);
    assert.deepEqual(
      (await Promise.all([one, other, one, other].map(list)))
        .map(({ status }) => status)
        .toSorted(),
      [200, 429, 429, 429],
    );
    clock.turn(499);
    assert.equal((await list(other)).status, 429);
    clock.turn(1);
    assert.equal((await list(other)).status, 200);
    assert.equal((await list(one)).headers.get('retry-after'), '1');
  });

  test('a Redis that lost its data learns from the database what was spent', async () => {
    const key = await newKey(session, { monthly_budget: (worstCost(brief) * 1.5) / 1e9 });
    await until('the budget does not suffice', async () => {
      const { status } = await complete(servers[0], key, brief);
      return status === 429;
    });
    const { requests } = await until('all are in the books', async () => {
      const row = (await listKeys(session)).find(({ id }) => id === key.id);
      return (row?.spend.cost ?? 0) * 1e9 > worstCost(brief) / 2 ? row?.spend : null;
    });
    assert(requests > 0);
    const client = await redis.connect();
    await client.flushall();
    await client.script('FLUSH');
    clock.turn(1000);
    for (const server of servers) {
      assert.equal((await complete(server, key, brief)).status, 429);
    }
  });

  test('requests that a silent server left running count once, before its lease ends', async (context) => {
    const [{ databaseUrl: url, dataDir }, server] = servers;
    const db = await openDatabase({ url, poolSize: 1, dataDir });
    context.after(() => db.destroy());
    const worst = worstCost(brief);
    const key = await newKey(session, { monthly_budget: (2 * worst) / 1e9 });
    const { id: accountId } = await db
      .selectFrom('accounts')
      .select('id')
      .executeTakeFirstOrThrow();
    const gone = { id: 'gone', last_seen: clock.now() };
    await db.insertInto('usage_processes').values(gone).execute();
    const left = endedRow({
      ...{ account_id: accountId, key_id: key.id, at: clock.now() },
      ...{ status: 'running', process: gone.id, cost_nano: Math.ceil(1.5 * worst) },
    });
    const before = { ...left, id: 'before', at: clock.now() - 40 * 86_400_000 };
    await insertRows(db, [left, before]);
    // As long as it may live, Redis holds the most that it can cost.
    clock.turn(14_000);
    assert.equal((await complete(server, key, brief)).status, 200);
    await until('it is in the books', async () =>
      (await listKeys(session)).some(({ id, spend }) => id === key.id && spend.requests === 1),
    );
    // A lease that was renewed a third of it before the end is over 20 seconds after it.
    clock.turn(5000);
    const refused = await readError(await complete(server, key, brief));
    assert.equal(refused.code, 'insufficient_quota');
    clock.turn(90_000);
    await createProcesses(db, clock, { id: 'sweeper', singleServer: false }).sweep();
    const closed = (await listKeys(session)).find(({ id }) => id === key.id);
    assert.equal(closed?.spend.requests, 2);
    clock.turn(1000);
    assert.deepEqual(await readError(await complete(server, key, brief)), refused);
  });

  test('what a dead replica held is freed when its lease ends, not before', async () => {
    const dead = createRedisStore(await redis.share(clock), 30_000);
    const alive = createRedisStore(await redis.share(clock), 30_000);
    const scope = newScope({ concurrentRequests: 1, monthlyBudgetNano: 1 });
    assert.equal((await dead.reserve([scope], ask, month)).refused, null);
    await dead.close();
    clock.turn(29_999);
    assert.equal((await alive.reserve([scope], ask, month)).refused?.limit, 'budget');
    clock.turn(1);
    const outcome = await alive.reserve([scope], ask, month);
    assert.equal(outcome.refused, null);
    assert.deepEqual([outcome.states[0]?.open, outcome.states[0]?.heldNano], [1, 1]);
    await alive.close();
  });

  test('a request that outlasts a lease stays counted, by Redis’ own clock', async () => {
    const leaseMs = 600;
    const store = createRedisStore(await redis.share(systemClock), leaseMs);
    const scope = newScope({ concurrentRequests: 1 });
    const running = await store.reserve([scope], ask, month);
    const begun = performance.now();
    while (performance.now() - begun < leaseMs * 2) {
      const outcome = await store.reserve([scope], ask, month);
      assert.equal(outcome.refused?.limit, 'concurrent');
      await sleep(20);
    }
    running.settle(ask);
    assert.equal((await store.reserve([scope], ask, month)).refused, null);
    await store.close();
  });

  test('a Redis that lost its data learns which requests run, and none that have ended', async (context) => {
    const own = await startRedis();
    context.after(() => own.stop());
    const store = createRedisStore(await own.share(systemClock), 1500);
    context.after(() => store.close());
    const look = await own.connect();
    const scope = newScope({ concurrentRequests: 3, monthlyBudgetNano: 1000 });
    const account = newScope({ monthlyBudgetNano: 2000 }, { kind: 'account' });
    const reserve = async (costNano: number) =>
      store.reserve([scope, account], { tokens: 1, costNano }, month);
    const running = [await reserve(600), await reserve(300)];
    const ended = await reserve(50);
    ended.settle({ tokens: 1, costNano: 0 });
    for (const forget of [() => look.flushall(), () => look.del(`${toKey(scope)}:open`)]) {
      await forget();
      await until('both are known again', async () => {
        const counts = [scope, account].map((one) => look.zcard(`${toKey(one)}:open`));
        return (await Promise.all(counts)).every((count) => count === 2);
      });
      const over = await reserve(101);
      assert.deepEqual(over.refused, { scope: 0, limit: 'budget' });
      for (const { open, heldNano } of over.states) assert.deepEqual([open, heldNano], [2, 900]);
    }
    for (const one of running) one.settle({ tokens: 1, costNano: 0 });
    const alone = await reserve(1000);
    assert.equal(alone.refused, null);
    // Longer than until the next renewal.
    await sleep(700);
    const last = await reserve(1);
    assert.deepEqual(last.states[0]?.open, 1);
    assert.deepEqual(last.states[0]?.heldNano, 1000);
  });

  test('a key that Redis evicts neither loses nor leaves a reservation', async (context) => {
    const store = createRedisStore(await redis.share(clock));
    context.after(() => store.close());
    const look = await redis.connect();
    const held = ({ states }: ReserveResult) => [states[0]?.open, states[0]?.heldNano];
    const cost = (costNano: number) => ({ tokens: 1, costNano });

    const first = newScope({ monthlyBudgetNano: 1000 });
    const running = await store.reserve([first], cost(600), month);
    await look.del(`${toKey(first)}:open`);
    running.settle(cost(0));
    const next = await store.reserve([first], cost(1000), month);
    assert.equal(next.refused, null);
    assert.deepEqual(held(next), [1, 1000]);

    const second = newScope({ monthlyBudgetNano: 1000 });
    const one = await store.reserve([second], cost(600), month);
    const two = await store.reserve([second], cost(100), month);
    await look.del(toKey(second));
    const over = await store.reserve([second], cost(301), month);
    assert.equal(over.refused?.limit, 'budget');
    assert.deepEqual(held(over), [2, 700]);
    await look.del(toKey(second));
    one.settle(cost(0));
    two.settle(cost(0));
    assert.deepEqual(held(await store.reserve([second], cost(1), month)), [1, 1]);
  });

  test('a reservation that a hung Redis grants too late is given back', async (context) => {
    const own = await startRedis();
    context.after(() => own.stop());
    const [shared, look] = [await own.share(clock), await own.connect()];
    const store = createRedisStore(shared);
    context.after(() => store.close());
    await shared.redis.ping();
    for (const costNano of [0, 7]) {
      const scope = newScope({ concurrentRequests: 1, monthlyBudgetNano: 10 });
      const account = newScope({ monthlyBudgetNano: 100 }, { kind: 'account' });
      own.freeze();
      await assert.rejects(async () =>
        store.reserve([scope, account], { tokens: 1, costNano }, month),
      );
      own.thaw();
      // On the same connection: it is answered after what was sent before.
      await shared.redis.ping();
      for (const key of [scope, account].map(toKey)) {
        assert.equal(await look.hget(key, 'h'), '0');
        assert.equal(await look.zcard(`${key}:open`), 0);
      }
      const next = await store.reserve([scope, account], { tokens: 1, costNano: 10 }, month);
      assert.equal(next.refused, null);
    }
  });

  test('a reply that arrives while this process is paused is not a timeout', async () => {
    const store = createRedisStore(await redis.share(clock));
    const reserved = store.reserve([newScope({ concurrentRequests: 1 })], ask, month);
    // Longer than the timeout for replies.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
    assert.equal((await reserved).refused, null);
    await store.close();
  });

  test('a server starts without its Redis, and limits by itself while its Redis hangs', async () => {
    const own = await startRedis();
    const server = await startTestServer({ clock, config: { redis: { url: own.url } } });
    const key = await newKey(await server.join(), { requests_per_minute: 2 });
    assert.equal((await complete(server, key, brief)).status, 200);
    own.freeze();
    // One of the two was let in before.
    for (const status of [200, 429, 429]) {
      assert.equal((await complete(server, key, brief)).status, status);
    }
    await server.stop();
    await own.stop();
    const again = await startTestServer({ on: server, clock, config: { redis: { url: own.url } } });
    assert.equal((await complete(again, key, brief)).status, 200);
  });

  test('without Redis requests are served, each server limits by itself, and metrics show it', async () => {
    const own = await startRedis();
    const config = { redis: { url: own.url } };
    const pair = await startTestServer({ clock, config });
    const owner = await pair.join();
    const key = await newKey(owner, { requests_per_minute: 3 });
    assert.equal((await complete(pair, key, brief)).status, 200);
    await own.stop();
    const statuses: number[] = [];
    for (let count = 0; count < 5; count++)
      statuses.push((await complete(pair, key, brief)).status);
    assert.deepEqual(statuses, [200, 200, 429, 429, 429]);
    const metrics = await (await pair.fetch('/metrics')).text();
    assert.match(metrics, /^millrace_unshared_limits_total 5$/m);
  });
});
