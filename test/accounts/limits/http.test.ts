// Limits of keys and accounts through the inference API, with the real built-in model.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { createHandClock, type HandClock } from '#test/support/clock.ts';
import { bothDatabases } from '#test/support/databases.ts';
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
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

for (const database of bothDatabases) {
  describe(`limits on ${database}`, () => {
    let clock: HandClock;
    let server: TestServer;
    let session: SessionFetch;
    before(async () => {
      clock = createHandClock(Date.parse('2026-01-31T22:00:00Z'));
      server = await startTestServer({
        database,
        clock,
        config: { models: await startPricedModel() },
      });
      session = await server.join();
    });
    const setAccount = (json: object) => session('/dashboard/api/limits', { method: 'PUT', json });

    test('of 200 concurrent requests, exactly as many are served as the rate allows', async () => {
      const key = await newKey(session, { requests_per_minute: 20 });
      const { granted, refused } = await storm([server], key, brief);
      assert.equal(granted.length, 20);
      assert(
        refused.every(({ type, code }) => type === 'requests' && code === 'rate_limit_exceeded'),
      );
      const remaining = granted.map(({ headers }) => headers.get('x-ratelimit-remaining-requests'));
      assert.deepEqual(
        remaining.map(Number).toSorted((one, other) => one - other),
        Array.from({ length: 20 }, (_, index) => index),
      );
      const late = await complete(server, key, brief);
      assert.equal(late.status, 429);
      const { headers } = late;
      assert.deepEqual(
        ['retry-after', 'retry-after-ms', 'x-ratelimit-limit-requests'].map((name) =>
          headers.get(name),
        ),
        ['3', '3000', '20'],
      );
      assert.equal(headers.get('x-ratelimit-reset-requests'), '1m0s');
      assert.equal(headers.get('x-ratelimit-limit-tokens'), null);
      clock.turn(2999);
      assert.equal((await complete(server, key, brief)).status, 429);
      clock.turn(1);
      assert.equal((await complete(server, key, brief)).status, 200);
    });

    test('of 200 concurrent requests, exactly as many run as the concurrency limit allows', async () => {
      const key = await newKey(session, { concurrent_requests: 7 });
      const { granted, refused } = await storm([server], key, endless);
      assert.equal(granted.length, 7);
      assert.deepEqual(
        [...new Set(refused.map(({ type, code }) => `${type} ${code}`))],
        ['requests rate_limit_exceeded'],
      );
      assert.match(refused[0]?.message ?? '', /^This key has 7 requests running/);
      await setAccount({ concurrent_requests: 3 });
      await until('the seven have ended', async () => (await complete(server, key, brief)).ok);
      const among = await storm([server], key, endless);
      assert.equal(among.granted.length, 3);
      assert.match(among.refused[0]?.message ?? '', /^This account has 3 requests running/);
      await setAccount({ concurrent_requests: null });
    });

    test('of 200 concurrent requests, only as many run as the budget covers at their maximum cost', async () => {
      const worst = worstCost(endless);
      const budget = (6 * worst + worst - 1) / 1e9;
      const key = await newKey(session, { monthly_budget: budget });
      const { granted, refused } = await storm([server], key, endless);
      assert.equal(granted.length, 6);
      assert(refused.every(({ type, code }) => type === code && code === 'insufficient_quota'));
      const spend = await until('all six are in the books', async () => {
        const row = (await listKeys(session)).find(({ id }) => id === key.id);
        return row?.spend.requests === 6 ? row.spend : null;
      });
      assert(spend.cost > 0 && spend.cost <= budget);
    });

    test('a spent budget refuses requests until the next month', async () => {
      const key = await newKey(session, { monthly_budget: (worstCost(brief) * 1.5) / 1e9 });
      const answers: number[] = [];
      const refused = await until('the budget does not suffice', async () => {
        const response = await complete(server, key, brief);
        answers.push(response.status);
        return response.status === 429 ? response : null;
      });
      assert(answers.length > 1, 'nothing was let in');
      assert.equal(refused.headers.get('x-should-retry'), 'false');
      assert.equal(refused.headers.get('retry-after'), null);
      const error = await readError(refused);
      assert.equal(error.code, 'insufficient_quota');
      assert.match(
        error.message,
        /^This key's budget of \$0\.0000\d+ a month has \$0\.0000\d+ left/,
      );
      clock.turn(2 * 3_600_000);
      assert.equal((await complete(server, key, brief)).status, 200);
      const [row] = (await listKeys(session)).filter(({ id }) => id === key.id);
      assert.equal(row?.spend.month, '2026-02');
    });
  });
}

describe('limits of keys and accounts', () => {
  let clock: HandClock;
  let server: TestServer;
  let session: SessionFetch;
  before(async () => {
    clock = createHandClock(Date.parse('2026-01-31T22:00:00Z'));
    server = await startTestServer({ clock });
    session = await server.join();
  });
  const setAccount = (json: object) => session('/dashboard/api/limits', { method: 'PUT', json });

  test('tokens are reserved for the longest response and given back if it is shorter', async () => {
    const key = await newKey(session, { tokens_per_minute: 1000 });
    const first = await complete(server, key, { ...brief, max_tokens: 900, stop: 'a' });
    const { usage } = (await first.json()) as { usage: { total_tokens: number } };
    assert.equal(first.headers.get('x-ratelimit-limit-tokens'), '1000');
    assert(Number(first.headers.get('x-ratelimit-remaining-tokens')) < 100);
    const second = await complete(server, key, brief);
    const left = Number(second.headers.get('x-ratelimit-remaining-tokens'));
    const estimate = 1 + Math.ceil(JSON.stringify(brief).length / 4);
    assert.equal(left, 1000 - usage.total_tokens - estimate);

    const running = new AbortController();
    await complete(server, key, { ...endless, max_tokens: 900 }, running.signal);
    const refused = await complete(server, key, { ...brief, max_tokens: 900 });
    assert.equal(refused.status, 429);
    assert(Number(refused.headers.get('retry-after-ms')) > 40_000);
    const { type, code } = await readError(refused);
    assert.deepEqual([type, code], ['tokens', 'rate_limit_exceeded']);
    running.abort();
  });

  test('a request that can never fit is refused without a retry-after', async () => {
    const key = await newKey(session, { tokens_per_minute: 1000 });
    const refused = await complete(server, key, { ...brief, max_tokens: 1001 });
    assert.equal(refused.status, 429);
    assert.equal(refused.headers.get('x-should-retry'), 'false');
    assert.equal(refused.headers.get('retry-after'), null);
    assert.equal(refused.headers.get('x-ratelimit-limit-tokens'), '1000');
    assert.equal(refused.headers.get('x-ratelimit-remaining-tokens'), '1000');
    assert.equal(refused.headers.get('x-ratelimit-reset-tokens'), '0ms');
    const { type, message } = await readError(refused);
    assert.equal(type, 'tokens');
    assert.match(
      message,
      /^Request too large: it could use 10\d\d tokens, and this key may use 1000/,
    );
  });

  test('an account’s limit is shared by its keys and people, a key’s limit is its own', async () => {
    const one = await newKey(session, { requests_per_minute: 2 });
    const other = await newKey(session, {});
    await setAccount({ requests_per_minute: 5 });
    const limitOf = ({ headers }: Response) =>
      `${headers.get('x-ratelimit-remaining-requests')} of ${headers.get('x-ratelimit-limit-requests')}`;
    assert.equal(limitOf(await complete(server, one, brief)), '1 of 2');
    assert.equal(limitOf(await complete(server, one, brief)), '0 of 2');
    assert.match(
      (await readError(await complete(server, one, brief))).message,
      /^This key is over/,
    );
    assert.equal(limitOf(await complete(server, other, brief)), '2 of 5');
    const person = () => session('/v1/completions', { json: brief });
    assert.equal(limitOf(await person()), '1 of 5');
    assert.equal(limitOf(await person()), '0 of 5');
    assert.match((await readError(await person())).message, /^This account is over/);
    assert.equal((await complete(server, other, brief)).status, 429);
    await setAccount({ requests_per_minute: null });
  });

  test('a budget holds for any model that may serve, and for images of any size', async (test) => {
    const upstream = await startScriptedUpstream();
    test.after(() => upstream.close());
    const backends = [{ name: 'a', url: upstream.url, model: 'scripted', server: 'vllm' as const }];
    const price = { input: 1, output: 1 };
    const dear = await startTestServer({
      config: {
        models: {
          catalog: {
            short: { backends, price, context_fallback: { above: 10, to: 'long' } },
            long: { backends, price, context_fallback: { above: 20, to: 'longest' } },
            longest: { backends, price: { input: 1000, output: 1000 } },
            seeing: { backends, price, context_window: 100_000 },
          },
        },
      },
    });
    const key = await newKey(await dear.join(), { monthly_budget: 0.01 });
    const headers = { authorization: `Bearer ${key.key}` };
    const chain = await complete(dear, key, { model: 'short', prompt: [1, 2], max_tokens: 1 });
    assert.equal((await readError(chain)).code, 'insufficient_quota');
    const content = (parts: object[]) => ({
      json: { model: 'seeing', messages: [{ role: 'user', content: parts }], max_tokens: 1 },
      headers,
    });
    const ask = (parts: object[]) => dear.fetch('/v1/chat/completions', content(parts));
    const url = 'https://example.com/a.png';
    const picture = await ask([{ type: 'image_url', image_url: { url } }]);
    assert.equal((await readError(picture)).code, 'insufficient_quota');
    assert.equal(upstream.requests.length, 0);
    assert.equal((await ask([{ type: 'text', text: url }])).status, 200);
  });

  test('refusals are counted by limit and scope', async () => {
    const count = async (limit: string, scope: string) => {
      const text = await (await fetch(`${server.url}/metrics`)).text();
      const labels = `{millrace_limit="${limit}",millrace_scope="${scope}"}`;
      const line = text.split('\n').find((one) => one.includes(`_refusals_total${labels}`));
      return Number(line?.split(' ').at(-1) ?? 0);
    };
    const before = [await count('requests', 'key'), await count('budget', 'account')];
    const key = await newKey(session, { requests_per_minute: 1 });
    for (let turn = 0; turn < 3; turn++) await complete(server, key, brief);
    await setAccount({ monthly_budget: 1e-9 });
    await complete(server, server, brief);
    await setAccount({ monthly_budget: null });
    const after = [await count('requests', 'key'), await count('budget', 'account')];
    assert.deepEqual(after, [(before[0] ?? 0) + 2, (before[1] ?? 0) + 1]);
  });

  test('without a limit there are no headers', async () => {
    const response = await complete(server, server, brief);
    assert.equal(response.status, 200);
    assert.deepEqual(
      [...response.headers.keys()].filter((name) => name.startsWith('x-ratelimit')),
      [],
    );
  });

  test('a changed limit applies at once here, and within a second in another process', async () => {
    const key = await newKey(session, {});
    const other = await startTestServer({ on: server, clock });
    assert.equal((await complete(other, key, brief)).status, 200);
    const change = (path: string, json: object, method: string) =>
      session(`/dashboard/api/${path}`, { method, json });
    await change(`api-keys/${key.id}`, { limits: { requests_per_minute: 1 } }, 'PATCH');
    assert.equal(
      (await complete(server, key, brief)).headers.get('x-ratelimit-limit-requests'),
      '1',
    );
    assert.equal((await complete(server, key, brief)).status, 429);
    clock.turn(1000);
    assert.equal(
      (await complete(other, key, brief)).headers.get('x-ratelimit-limit-requests'),
      '1',
    );
    assert.equal((await complete(other, key, brief)).status, 429);
    await change(`api-keys/${key.id}`, { limits: { requests_per_minute: null } }, 'PATCH');
    assert.equal((await complete(server, key, brief)).status, 200);
  });
});
