// Attacks with request bodies through HTTP, in short form: which are refused, how early and with which error, and
// that other callers are served meanwhile.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { gatewayModel, startGateway } from '#test/support/gateway.ts';
import { newKey as createKey } from '#test/support/limits/callers.ts';
import type { TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const chat = '/v1/chat/completions';
const head = `{"model":"${gatewayModel}","messages":[{"role":"user","content":"Go"}]`;

interface Received {
  status: number | undefined;
  headers: IncomingMessage['headers'];
  body: { error?: { code: string; message: string; type?: string }; [name: string]: unknown };
}

interface Upload {
  readonly sent: ClientRequest;
  readonly response: Promise<Received>;
}

/** Starts a request whose body the test writes. Without a length the body is chunked. */
function upload(
  server: TestServer,
  path: string,
  key: string,
  { length, expects = false }: { length?: number | undefined; expects?: boolean } = {},
): Upload {
  const sent = request(`${server.url}${path}`, {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(length === undefined ? {} : { 'content-length': length }),
      ...(expects ? { expect: '100-continue' } : {}),
    },
  });
  sent.flushHeaders();
  return { sent, response: readResponse(sent) };
}

async function readResponse(sent: ClientRequest): Promise<Received> {
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const body = JSON.parse((await response.toArray()).join(''));
  return { status: response.statusCode, headers: response.headers, body };
}

/** A valid chat request of `bytes` bytes. */
const longChat = (bytes: number) => {
  const text = `${head},"user":"u","stop":null,"zz":""}`;
  return text.replace('"zz":""', `"zz":"${'x'.repeat(bytes - text.length)}"`);
};

const newKey = async (...[session, limits]: Parameters<typeof createKey>): Promise<string> =>
  (await createKey(session, limits)).key ?? '';

const start = (test: TestContext, inference: object = {}) =>
  startGateway(test, { upstreams: [{}], inference });

describe('a body with too many values', () => {
  test('is refused long before its end, in the error format of its API', async (t) => {
    const { server } = await start(t);
    const session = await server.join();
    const { sent, response } = upload(server, chat, server.key, { length: 7_800_000 });
    sent.write(`${head},"zz":[${'{},'.repeat(300_000)}`);
    const { status, body } = await response;
    assert.equal(status, 400);
    assert.equal(body.error?.type, 'invalid_request_error');
    assert.match(body.error?.message ?? '', /more than 200000 JSON values/);
    sent.destroy();
    const json = { zz: Array(6_000).fill(0) };
    const cloud = await server.fetch('/api/v1/ssh-keys', { json });
    const refusal = (await cloud.json()) as { error: { code: string; message: string } };
    assert.deepEqual([cloud.status, refusal.error.code], [400, 'global/invalid-parameters']);
    assert.match(refusal.error.message, /more than 5000 JSON values/);
    const own = await session('/dashboard/api/api-keys', { json });
    assert.equal(own.status, 400);
    assert.match(JSON.stringify(await own.json()), /more than 5000 JSON values/);
    await until('the refusal is recorded as usage', async () => {
      const usage = await session('/dashboard/api/usage/requests');
      const { data } = (await usage.json()) as { data: { status: string; code: string }[] };
      return data.some(({ status: one, code }) => one === 'refused' && code === 'invalid_value');
    });
  });

  test('is refused as early if it is too deep', async (t) => {
    const { server } = await start(t);
    for (const path of [chat, '/api/v1/ssh-keys', '/dashboard/api/login']) {
      const { sent, response } = upload(server, path, server.key, { length: 60_000 });
      sent.write('['.repeat(129));
      const { status, body } = await response;
      assert.equal(status, 400, path);
      assert.match(JSON.stringify(body), /nested deeper than 128 levels/);
      sent.destroy();
    }
  });

  test('leaves the connection open for the next request', async (t) => {
    const { server } = await start(t);
    const body = `${head},"zz":[${'{},'.repeat(400_000)}{}]}`;
    const headers = { 'content-type': 'application/json' };
    const refused = await server.fetch(chat, { method: 'POST', body, headers });
    assert.equal(refused.status, 400);
    assert.notEqual(refused.headers.get('connection'), 'close');
  });
});

describe('a body that is too long', () => {
  test('is refused by its declared length before a byte of it is sent', async (t) => {
    const { server } = await start(t);
    for (const path of [chat, '/api/v1/ssh-keys', '/dashboard/api/login']) {
      const { sent, response } = upload(server, path, server.key, { length: 9_000_000 });
      const { status, body } = await response;
      assert.match(JSON.stringify(body), /over the limit of/, path);
      assert.equal(status, path.startsWith('/api') ? 400 : 413);
      sent.destroy();
    }
  });

  test('is cut off at the limit if it has no length', async (t) => {
    const { server } = await start(t, { max_body_mib: 1 });
    const { sent, response } = upload(server, chat, server.key);
    sent.write(`${head},"zz":"${'x'.repeat(1_100_000)}`);
    const { status, body } = await response;
    assert.deepEqual([status, body.error?.code], [413, 'request_too_large']);
    sent.destroy();
  });
});

describe('a large body', () => {
  test('reaches the upstream as it was sent, with or without a length', async (t) => {
    const { server, upstreams } = await start(t);
    const seed = '9223372036854775807';
    const text = longChat(600_000).replace('"stop":null', `"seed":${seed},"top_k":5`);
    for (const length of [Buffer.byteLength(text), undefined]) {
      const { sent, response } = upload(server, chat, server.key, { length });
      sent.end(text);
      assert.equal((await response).status, 200);
      const received = upstreams[0]?.requests.at(-1)?.body as Record<string, unknown>;
      assert.deepEqual(received.messages, [{ role: 'user', content: 'Go' }]);
      assert.equal(received.zz, JSON.parse(text).zz);
      assert.equal(received.top_k, 5);
    }
  });

  test('is refused with the same error as a small one', async (t) => {
    const { server } = await start(t);
    const pad = 'x'.repeat(300_000);
    for (const wrong of [
      { messages: [] },
      { messages: 'a' },
      { messages: [{ role: 'user', content: 'a' }], temperature: 9 },
      { messages: [{ role: 'nobody', content: 'a' }] },
      { messages: [{ role: 'user', content: 'a' }], stop: [''] },
      { messages: [{ role: 'user', content: 'a' }], seed: 1e30 },
    ]) {
      const ask = async (more: object) => {
        const json = { model: gatewayModel, ...wrong, ...more };
        const response = await server.fetch(chat, { json });
        return [response.status, await response.json()];
      };
      assert.deepEqual(await ask({ zz: pad }), await ask({}), JSON.stringify(wrong));
    }
    const send = (body: string) =>
      server.fetch(chat, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    const [small, large] = [await send('{"a":'), await send(`{"a":"${pad}`)];
    assert.deepEqual([large.status, await large.json()], [small.status, await small.json()]);
  });

  test('is not read while its key has its maximum of concurrent requests', async (t) => {
    const { server } = await start(t);
    const session = await server.join();
    const key = await newKey(session, { concurrent_requests: 2 });
    const text = longChat(600_000);
    const small = async () => {
      const json = { model: gatewayModel, messages: [{ role: 'user', content: 'Go' }] };
      return (await server.fetch(chat, { json, headers: { authorization: `Bearer ${key}` } }))
        .status;
    };
    // From here on the key and its limits are cached: a request that got 100 Continue has been counted.
    assert.equal(await small(), 200);
    const begun = [0, 1].map(() =>
      upload(server, chat, key, { length: text.length, expects: true }),
    );
    for (const { sent } of begun) {
      await once(sent, 'continue');
      sent.write(text.slice(0, 300_000));
    }
    assert.equal(await small(), 429);
    const third = upload(server, chat, key, { length: text.length });
    const { status, headers, body } = await third.response;
    assert.deepEqual([status, body.error?.code], [429, 'rate_limit_exceeded']);
    assert.notEqual(headers['retry-after'], undefined);
    third.sent.destroy();
    for (const { sent } of begun) sent.end(text.slice(300_000));
    for (const { response } of begun) assert.equal((await response).status, 200);
  });

  test('is not read while its key is over its rate limit', async (t) => {
    const { server } = await start(t);
    const key = await newKey(await server.join(), { requests_per_minute: 1 });
    const text = longChat(600_000);
    const first = upload(server, chat, key, { length: text.length });
    first.sent.end(text);
    assert.equal((await first.response).status, 200);
    const second = upload(server, chat, key, { length: text.length });
    assert.equal((await second.response).status, 429);
    second.sent.destroy();
  });

  test('waits while its caller’s share of the room is used up, and other callers are served', async (t) => {
    const { server } = await start(t, { max_body_mib: 1, large_bodies_mib: 4 });
    const session = await server.join();
    const [greedy, modest] = [await newKey(session, {}), await newKey(session, {})];
    const text = longChat(1_000_000);
    const begin = (key: string) => upload(server, chat, key, { length: text.length });
    const slow = [begin(greedy), begin(greedy)];
    for (const { sent } of slow) sent.write(text.slice(0, 300_000));
    const waiting = begin(greedy);
    waiting.sent.end(text);
    const other = begin(modest);
    other.sent.end(text);
    assert.equal((await other.response).status, 200);
    // A client that disconnects in the middle of its upload makes room.
    slow[0]?.sent.once('error', () => {}).destroy();
    slow[0]?.response.catch(() => {});
    assert.equal((await waiting.response).status, 200);
    slow[1]?.sent.end(text.slice(300_000));
    assert.equal((await slow[1]?.response)?.status, 200);
  });
});
