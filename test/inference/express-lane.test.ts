// The express lane and Fastify's route are two ways to one end: whatever is asked, both say the same.

import assert from 'node:assert/strict';
import { createConnection } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { startScriptedUpstream } from '../../src/inference/engines/scripted.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const paths = { chat: '/v1/chat/completions', completion: '/v1/completions' } as const;
const messages = [{ role: 'user', content: 'How are you?' }];
const model = 'hermes3-8b';

/** The first is taken by the lane; the other is as good, but rare, and so is left to Fastify. */
const types = ['application/json', 'application/json;charset=utf-8'] as const;

/** After a body that can't be read, Fastify closes the connection; the lane has read it and goes on. */
const ofConnection = new Set(['connection', 'keep-alive', 'transfer-encoding']);

const cases: Record<string, { path?: keyof typeof paths; body: string }> = {
  'a plain chat': { body: JSON.stringify({ model, messages }) },
  'a plain completion': { path: 'completion', body: JSON.stringify({ model, prompt: 'Once' }) },
  'a stream': { body: JSON.stringify({ model, messages, stream: true }) },
  'letters beyond ASCII': {
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Grüße, 世界' }] }),
  },
  'half a body': { body: '{"model": "hermes3-8b", "mess' },
  'bytes that are no text': { body: '{"model": "\xff\xfe"}' },
  'deep nesting': { body: `{"model": ${'['.repeat(200)}${']'.repeat(200)}}` },
  'a member of the wrong type': { body: JSON.stringify({ model, messages, temperature: 'hot' }) },
  'a member that is missing': { body: JSON.stringify({ model }) },
  'members that exclude each other': {
    body: JSON.stringify({ model, messages, stream_options: { include_usage: true } }),
  },
  'a model nobody has': { body: JSON.stringify({ model: 'nobody-has-it', messages }) },
  'a prompt that is too long': {
    body: JSON.stringify({
      model,
      messages: [{ role: 'user', content: 'long '.repeat(200_000) }],
    }),
  },
  'more tokens than there may be': {
    body: JSON.stringify({ model, messages, max_tokens: 10_000_000 }),
  },
};

describe('the express lane', () => {
  let server: TestServer;
  let closeUpstream: () => Promise<void>;
  after(() => closeUpstream());
  before(async () => {
    const upstream = await startScriptedUpstream({ words: 6 });
    server = await startTestServer({
      config: {
        models: {
          catalog: {
            [model]: {
              backends: [{ name: 'up', url: upstream.url, model: 'm', server: 'openai' }],
            },
          },
        },
      } as never,
    });
    closeUpstream = upstream.close;
  });

  async function ask(type: string, path: string, body: string) {
    // Keys are remembered for a second; one that is not would be left to Fastify.
    await server.fetch('/v1/models');
    const response = await server.fetch(path, {
      method: 'POST',
      headers: { 'content-type': type },
      body: Buffer.from(body, body.includes('\xff') ? 'latin1' : 'utf8'),
    });
    const names = [...response.headers.keys()].filter((name) => !ofConnection.has(name));
    return { status: response.status, names: names.sort(), text: await response.text() };
  }

  const comparable = (text: string) =>
    text
      .replaceAll(/"id":"[^"]+"/g, '"id":""')
      .replaceAll(/"created":\d+/g, '"created":0')
      .replaceAll(/chatcmpl-\w+|chat-\w+|cmpl-\w+/g, 'an id');

  for (const [name, { path = 'chat', body }] of Object.entries(cases)) {
    test(`answers as Fastify does: ${name}`, async () => {
      const [express, usual] = [
        await ask(types[0], paths[path], body),
        await ask(types[1], paths[path], body),
      ];
      assert.equal(express.status, usual.status);
      assert.deepEqual(express.names, usual.names);
      assert.equal(comparable(express.text), comparable(usual.text));
    });
  }

  test('both are told of in metrics and by the same route', async () => {
    const count = async () => {
      const text = await (await server.fetch('/metrics')).text();
      const line =
        /^http_server_request_duration_seconds_count\{http_request_method="POST",http_route="\/v1\/chat\/completions",http_response_status_code="200"\} (\d+)$/m;
      return Number(line.exec(text)?.[1] ?? 0);
    };
    const before = await count();
    for (const type of types) await ask(type, paths.chat, JSON.stringify({ model, messages }));
    await until('both were counted', async () => (await count()) === before + 2);
  });

  test('a key that was revoked is no longer recognized', async () => {
    const owner = await server.join();
    const made = await owner('/dashboard/api/api-keys', {
      json: { label: 'short', scopes: ['inference'] },
    });
    const { key, id } = (await made.json()) as { key: string; id: string };
    const use = () =>
      server.fetch(paths.chat, {
        json: { model, messages },
        headers: { authorization: `Bearer ${key}` },
      });
    assert.equal((await use()).status, 200);
    assert.equal((await use()).status, 200);
    await owner(`/dashboard/api/api-keys/${id}`, { method: 'DELETE' });
    assert.equal((await use()).status, 401);
  });

  test('two requests at once on one connection are answered in their order', async () => {
    await server.fetch('/v1/models');
    const { hostname, port } = new URL(server.url);
    const socket = createConnection({ host: hostname, port: Number(port) });
    const request = (body: string) =>
      `POST ${paths.chat} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    let seen = '';
    socket.on('data', (data) => {
      seen += data;
    });
    const stream = JSON.stringify({ model, messages, stream: true });
    socket.write(request(stream) + request(JSON.stringify({ model: 'nobody-has-it', messages })));
    await until('both came', () => seen.includes('model_not_found'));
    assert(seen.indexOf('[DONE]') < seen.indexOf('404 Not Found'));
    socket.destroy();
  });

  test('a client of HTTP/1.0 gets its stream without lengths, up to the end of the connection', async () => {
    await server.fetch('/v1/models');
    const { hostname, port } = new URL(server.url);
    const socket = createConnection({ host: hostname, port: Number(port) });
    const body = JSON.stringify({ model, messages, stream: true });
    socket.write(
      `POST ${paths.chat} HTTP/1.0\r\nauthorization: Bearer ${server.key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    let seen = '';
    for await (const data of socket) seen += data;
    const [head = '', events = ''] = seen.split('\r\n\r\n');
    assert.doesNotMatch(head, /transfer-encoding/i);
    assert.match(events, /^data: \{.*\n\ndata: \[DONE\]\n\n$/s);
  });
});
