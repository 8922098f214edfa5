// There are three ways to an answer: on a connection that is taken before Node's HTTP server sees it, through that
// server and past Fastify, and through both. Whatever is asked, all say the same.

import assert from 'node:assert/strict';
import { subscribe } from 'node:diagnostics_channel';
import { writeFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { request as requestTls, Agent as TlsAgent } from 'node:https';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createIdentity } from '../../src/cloud/drivers/incus/client-certificate.ts';
import { startScriptedUpstream } from '../../src/inference/engines/scripted.ts';
import { makeFolder } from '../support/process.ts';
import { startTestServer, type TestOptions, type TestServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const paths = { chat: '/v1/chat/completions', completion: '/v1/completions' } as const;
const messages = [{ role: 'user', content: 'How are you?' }];
const model = 'hermes3-8b';

/** What says the same and is rare goes another way. */
const ways = {
  'in front': { headers: { 'content-type': 'application/json' }, asksServer: false },
  'past the framework': {
    headers: { 'content-type': 'application/json', accept: ['*/*', 'text/plain'] },
    asksServer: true,
  },
  'through it': { headers: { 'content-type': 'application/json;charset=utf-8' }, asksServer: true },
};

/** After a body that can't be read, Fastify closes the connection; the others have read it and go on. */
const ofConnection = new Set(['connection', 'keep-alive', 'transfer-encoding']);

/** The ports at which Node's HTTP server took a request. */
const askedServers: (number | undefined)[] = [];
subscribe('http.server.request.start', (message) => {
  const { socket } = message as { socket: Socket };
  askedServers.push(socket.localPort);
});

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
  let models: NonNullable<TestOptions['config']>['models'];
  let closeUpstream: () => Promise<void>;
  after(() => closeUpstream());
  before(async () => {
    const upstream = await startScriptedUpstream({ words: 6 });
    const backend = { name: 'up', url: upstream.url, model: 'm', server: 'openai' };
    models = { catalog: { [model]: { backends: [backend] } } } as never;
    server = await startTestServer({ config: { models } });
    closeUpstream = upstream.close;
  });

  /** On a connection of its own. */
  async function ask(
    way: (typeof ways)[keyof typeof ways],
    path: string,
    body: string,
    { url, key } = server,
  ) {
    const bytes = Buffer.from(body, body.includes('\xff') ? 'latin1' : 'utf8');
    const { port, protocol } = new URL(url);
    const isTls = protocol === 'https:';
    const agent = new (isTls ? TlsAgent : Agent)({ keepAlive: true });
    const authorization = `Bearer ${key}`;
    const headers = { ...way.headers, authorization, 'content-length': bytes.length };
    const options = { port, path, method: 'POST', agent, headers, rejectUnauthorized: false };
    askedServers.length = 0;
    const response = await new Promise<IncomingMessage>((resolve, reject) =>
      (isTls ? requestTls : request)(options, resolve).on('error', reject).end(bytes),
    );
    const text = Buffer.concat(await response.toArray()).toString();
    agent.destroy();
    assert.equal(askedServers.includes(Number(port)), way.asksServer);
    const names = Object.keys(response.headers).filter((name) => !ofConnection.has(name));
    return { status: response.statusCode, names, text };
  }

  const comparable = (text: string) =>
    text
      .replaceAll(/"id":"[^"]+"/g, '"id":""')
      .replaceAll(/"created":\d+/g, '"created":0')
      .replaceAll(/chatcmpl-\w+|chat-\w+|cmpl-\w+/g, 'an id');

  for (const [name, { path = 'chat', body }] of Object.entries(cases)) {
    test(`answers as Fastify does: ${name}`, async () => {
      const usual = await ask(ways['through it'], paths[path], body);
      for (const way of [ways['in front'], ways['past the framework']]) {
        const express = await ask(way, paths[path], body);
        assert.equal(express.status, usual.status);
        assert.deepEqual(express.names.toSorted(), usual.names.toSorted());
        assert.equal(comparable(express.text), comparable(usual.text));
      }
    });
  }

  test('answers on encrypted connections, too', async () => {
    const identity = createIdentity('localhost', Date.now());
    const folder = makeFolder();
    const files = { tls_certificate: join(folder, 'tls.crt'), tls_key: join(folder, 'tls.key') };
    writeFileSync(files.tls_certificate, identity.certificate);
    writeFileSync(files.tls_key, identity.key);
    const encrypted = await startTestServer({ config: { server: files, models } });
    const text = JSON.stringify({ model, messages, stream: true });
    const said = new Set<string>();
    for (const way of Object.values(ways))
      said.add(comparable((await ask(way, paths.chat, text, encrypted)).text));
    assert.match([...said].join(), /^data: .*data: \[DONE\]\n\n$/s);
    assert.equal(said.size, 1);
  });

  test('all are told of in metrics and by the same route', async () => {
    const count = async () => {
      const text = await (await server.fetch('/metrics')).text();
      const line =
        /^http_server_request_duration_seconds_count\{http_request_method="POST",http_route="\/v1\/chat\/completions",http_response_status_code="200"\} (\d+)$/m;
      return Number(line.exec(text)?.[1] ?? 0);
    };
    const before = await count();
    const body = JSON.stringify({ model, messages });
    for (const way of Object.values(ways)) await ask(way, paths.chat, body);
    await until('all were counted', async () => (await count()) === before + 3);
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

  test('a body that breaks off leaves its row, and is answered in the words of this API', async () => {
    const own = await startTestServer();
    const session = await own.join();
    for (const [way, { headers }] of Object.entries(ways)) {
      const lines = Object.entries(headers).flatMap(([name, values]) =>
        [values].flat().map((value) => `${name}: ${value}\r\n`),
      );
      const head = `POST ${paths.chat} HTTP/1.1\r\nHost: mill\r\nAuthorization: Bearer ${own.key}\r\n`;
      const socket = createConnection(Number(new URL(own.url).port), '127.0.0.1');
      socket.end(`${head}${lines.join('')}Content-Length: 500\r\n\r\n{"mod`);
      const [answered, body = ''] = (await socket.toArray()).join('').split('\r\n\r\n');
      assert.match(answered ?? '', /^HTTP\/1\.1 400 Bad Request/, way);
      assert.deepEqual(JSON.parse(body).error, {
        message: 'The request ended before it was whole.',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_json',
      });
    }
    const rows = await until('each has its row', async () => {
      const response = await session('/dashboard/api/usage/requests');
      const { data } = (await response.json()) as { data: { status: string }[] };
      return data.length >= 3 ? data : null;
    });
    assert.deepEqual(
      rows.map(({ status }) => status),
      ['refused', 'refused', 'refused'],
    );
  });

  test('junk behind a request waits for its answer', async () => {
    const own = await startTestServer();
    const socket = createConnection(Number(new URL(own.url).port), '127.0.0.1');
    const ask = (request: string, more: string) =>
      `${request} HTTP/1.1\r\nHost: mill\r\nAuthorization: Bearer ${own.key}\r\n${more}\r\n`;
    // The first one leads past the connection's own reader.
    const body = JSON.stringify({ model, messages, max_tokens: 64 });
    const head = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    socket.write(ask('GET /v1/models', '') + ask(`POST ${paths.chat}`, head) + body);
    setTimeout(() => socket.write('JUNK\0\r\n\r\n'), 20);
    const heard = (await socket.toArray()).join('');
    const lines = heard.match(/HTTP\/1\.1 \d+/g);
    assert.deepEqual(lines, ['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400']);
    assert(heard.includes('"object":"chat.completion"'));
  });

  test('two requests at once on one connection are answered in their order', async () => {
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
