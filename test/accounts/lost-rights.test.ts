// A right that is taken away ends what it started: streams end with an error event, and waiting requests never start.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createRunningClock } from '#test/support/clock.ts';
import { bothDatabases } from '#test/support/databases.ts';
import { type Gateway, gatewayModel, startGateway } from '#test/support/gateway.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const api = '/dashboard/api';
/** A stream that would take minutes. */
const slow = { words: 2000, eventDelayMs: 100 };

interface Key {
  id: string;
  key: string;
}

const createKey = async (session: SessionFetch, expires_at: string | null = null) =>
  (await (
    await session(`${api}/api-keys`, { json: { label: 'a key', expires_at } })
  ).json()) as Key;

async function invite(server: TestServer, owner: SessionFetch) {
  const invited = await owner(`${api}/invitations`, { json: { role: 'member' } });
  const { link } = (await invited.json()) as { link: string };
  const session = await server.joinBy(link, 'ann@example.com');
  const { id } = (await (await session(`${api}/me`)).json()) as { id: string };
  return { session, id };
}

/** Opens a stream, and resolves once it has text. */
async function openStream(
  send: TestServer['fetch'],
  key: string | null,
  path = '/v1/chat/completions',
) {
  const response = await send(path, {
    json: {
      model: gatewayModel,
      messages: [{ role: 'user', content: 'Go' }],
      stream: true,
      max_tokens: 2000,
    },
    ...(key !== null && { headers: { authorization: `Bearer ${key}` } }),
  });
  assert.equal(response.status, 200);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  assert(reader !== undefined);
  let text = '';
  while (!/"(content|text)":"[^"]/.test(text)) text += (await reader.read()).value ?? '';
  return {
    async readRest(): Promise<string> {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return text;
        text += value;
      }
    },
    leave: () => reader.cancel(),
  };
}

const startSlow = (t: TestContext, options: Partial<Parameters<typeof startGateway>[1]> = {}) =>
  startGateway(t, { upstreams: [slow], ...options });

const lastRow = async (owner: SessionFetch) => {
  const { data } = (await (await owner(`${api}/usage/requests?limit=1`)).json()) as {
    data: { status: string; code: string | null; completion_tokens: number }[];
  };
  return data[0];
};

/** The upstream is told, so that its GPU is free. */
const untilLeft = ({ upstreams }: Gateway) =>
  until('the backend was told', () =>
    Promise.resolve(upstreams[0]?.requests.at(-1)?.state === 'left'),
  );

for (const database of bothDatabases)
  describe(`a right that is taken away, on ${database}`, () => {
    test('ends the streams of a revoked key with an error event', async (t) => {
      const gateway = await startSlow(t, { server: { database } });
      const { server } = gateway;
      const owner = await server.join();
      const { id, key } = await createKey(owner);
      const stream = await openStream(server.fetch, key);
      await owner(`${api}/api-keys/${id}`, { method: 'DELETE' });
      const text = await stream.readRest();
      assert.match(text, /"code":"invalid_api_key"/);
      assert(text.endsWith('data: [DONE]\n\n'), text.slice(-300));
      await untilLeft(gateway);
      await until('the row is written', async () => (await lastRow(owner))?.status === 'failed');
      const row = await lastRow(owner);
      assert.equal(row?.code, 'invalid_api_key');
      assert(row.completion_tokens > 0, 'what was generated is charged');
    });

    test('ends the streams of a key whose creator becomes a viewer or is removed', async (t) => {
      const { server } = await startSlow(t, { server: { database } });
      const owner = await server.join();
      const ann = await invite(server, owner);
      const { key } = await createKey(ann.session);
      const own = await createKey(owner);
      const untouched = await openStream(server.fetch, own.key);
      const [byKey, bySession] = [
        await openStream(server.fetch, key),
        await openStream(ann.session, null),
      ];
      const path = `${api}/members/${ann.id}`;
      await owner(path, { method: 'PATCH', json: { role: 'viewer' } });
      for (const one of [byKey, bySession])
        assert.match(await one.readRest(), /"code":"invalid_api_key"/);
      await owner(path, { method: 'PATCH', json: { role: 'member' } });
      const again = [await openStream(server.fetch, key), await openStream(ann.session, null)];
      await owner(path, { method: 'DELETE' });
      for (const one of again) assert.match(await one.readRest(), /"code":"invalid_api_key"/);
      await untouched.leave();
    });

    test('ends streams on the other servers', async (t) => {
      const clock = createRunningClock();
      const { server } = await startSlow(t, { server: { database, clock } });
      const owner = await server.join();
      const other = await startTestServer({ database, on: server });
      const { id, key } = await createKey(owner);
      const stream = await openStream(server.fetch, key);
      const session = other.withCookie(owner.cookie);
      await session(`${api}/api-keys/${id}`, { method: 'DELETE' });
      clock.turn(1000);
      assert.match(await clock.through(stream.readRest()), /"code":"invalid_api_key"/);
    });
  });

describe('a right that ends', () => {
  test('ends the streams of a key that expires', async (t) => {
    const clock = createRunningClock();
    const { server } = await startSlow(t, { server: { clock } });
    const owner = await server.join();
    const { key } = await createKey(owner, new Date(clock.now() + 60_000).toISOString());
    const stream = await openStream(server.fetch, key);
    clock.turn(61_000);
    assert.match(await clock.through(stream.readRest()), /"code":"invalid_api_key"/);
  });

  test('refuses a request that waits for a backend, before it starts', async (t) => {
    const gateway = await startSlow(t, { backend: { concurrency: 1 } });
    const { server, upstreams } = gateway;
    const owner = await server.join();
    const { id, key } = await createKey(owner);
    const running = await openStream(server.fetch, null);
    const waiting = gateway.chat({}, { headers: { authorization: `Bearer ${key}` } });
    await until('the request waits', async () =>
      /millrace_queue_length\{[^}]*\} 1/.test(await gateway.metrics()),
    );
    await owner(`${api}/api-keys/${id}`, { method: 'DELETE' });
    const response = await waiting;
    const { error } = (await response.json()) as { error: { code: string } };
    assert.deepEqual([response.status, error.code], [401, 'invalid_api_key']);
    assert.equal(upstreams[0]?.requests.filter(({ path }) => /chat/.test(path)).length, 1);
    await running.leave();
  });

  test('ends streams of the other APIs in their own words', async (t) => {
    const { server } = await startSlow(t);
    const owner = await server.join();
    const { id, key } = await createKey(owner);
    const stream = await openStream(server.fetch, key, '/v1/messages');
    await owner(`${api}/api-keys/${id}`, { method: 'DELETE' });
    assert.match(await stream.readRest(), /event: error\ndata: .*authentication_error/);
  });

  test('ends whole responses', async (t) => {
    const gateway = await startGateway(t, { upstreams: [{ delayMs: 600_000 }] });
    const { server, upstreams } = gateway;
    const owner = await server.join();
    const { id, key } = await createKey(owner);
    const whole = gateway.chat({}, { headers: { authorization: `Bearer ${key}` } });
    await until('it runs', () =>
      Promise.resolve(upstreams[0]?.requests.at(-1)?.path.endsWith('/chat/completions')),
    );
    await owner(`${api}/api-keys/${id}`, { method: 'DELETE' });
    const response = await whole;
    assert.equal(response.status, 401);
    assert.match(await response.text(), /invalid_api_key/);
    await untilLeft(gateway);
  });

  test('lets requests finish if the person who revokes the key asks for it', async (t) => {
    const { server } = await startGateway(t, { upstreams: [{ words: 30, eventDelayMs: 50 }] });
    const owner = await server.join();
    const { id, key } = await createKey(owner);
    const stream = await openStream(server.fetch, key);
    await owner(`${api}/api-keys/${id}?running=finish`, { method: 'DELETE' });
    const text = await stream.readRest();
    assert.match(text, /"finish_reason":"(stop|length)"/);
    assert.doesNotMatch(text, /error/);
    const headers = { authorization: `Bearer ${key}` };
    assert.equal((await server.fetch('/v1/models', { headers })).status, 401);
  });
});
