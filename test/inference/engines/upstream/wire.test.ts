// Upstreams as they are met on the wire: connections that were closed meanwhile, old versions of HTTP,
// addresses of every form, compressed responses, unsigned certificates.

import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { createServer as createRawServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { gzipSync } from 'node:zlib';
import type { Task } from '#inference/engine.ts';
import {
  createUpstreamEngine,
  probeUpstream,
  type UpstreamOptions,
} from '#inference/engines/upstream/upstream.ts';
import type { EngineChunk } from '#inference/wire/response.ts';
import { certificate, certificateKey } from '#test/support/certificate.ts';
import { newCall, readStream } from '#test/support/engine-call.ts';
import { listen } from '#test/support/listen.ts';
import { upstreamOptions } from '#test/support/upstream.ts';

const task: Task = {
  kind: 'chat',
  body: { model: 'm', messages: [{ role: 'user', content: 'x' }] },
};
const answer = JSON.stringify({
  choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
const chunk = (delta: object, finish: string | null = null) =>
  JSON.stringify({ id: 'u', choices: [{ index: 0, delta, finish_reason: finish }] });
const events = [chunk({ content: 'Hi' }), chunk({}, 'stop'), '[DONE]']
  .map((data) => `data: ${data}\n\n`)
  .join('');

function engineFor(test: TestContext, url: string, overrides: Partial<UpstreamOptions> = {}) {
  const engine = createUpstreamEngine(upstreamOptions(url, overrides));
  test.after(() => engine.close());
  const say = async () => {
    const { choices } = await engine.respond(task, newCall());
    return (choices[0] as { message: { content: string } }).message.content;
  };
  const stream = async () => {
    const chunks = await readStream(await engine.stream(task, newCall()));
    return chunks.map(({ choices: [choice] }: EngineChunk) =>
      choice !== undefined && 'delta' in choice ? (choice.delta.content ?? '') : '',
    );
  };
  return { say, stream };
}

const serve = (test: TestContext, listener: RequestListener, host?: string) =>
  listen(test, createServer(listener), host);

/** Answers each request on each connection with these bytes; `seen` counts requests. */
async function serveRaw(test: TestContext, reply: (socket: Socket, nth: number) => void) {
  const seen = { requests: 0 };
  const server = createRawServer((socket) => {
    let nth = 0;
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      if (!bytes.toString('latin1').startsWith('POST')) return;
      seen.requests++;
      reply(socket, ++nth);
    });
  });
  return { url: `http://127.0.0.1:${await listen(test, server)}/v1`, seen };
}

const raw = (head: string, body: string) =>
  `HTTP/1.1 200 OK\r\n${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const json = 'content-type: application/json';

describe('upstreams on the wire', () => {
  for (const [how, close] of [
    ['closed', (socket: Socket) => socket.destroy()],
    ['reset', (socket: Socket) => socket.resetAndDestroy()],
  ] as const) {
    test(`an idle connection that is ${how} when it is reused costs no request`, async (t) => {
      const { url, seen } = await serveRaw(t, (socket, nth) => {
        if (nth === 1) socket.write(raw(json, answer));
        else close(socket);
      });
      const { say } = engineFor(t, url);
      for (let round = 0; round < 3; round++) assert.equal(await say(), 'Hi');
      // Each kept connection was tried, and nothing was asked beyond that.
      assert(seen.requests > 3 && seen.requests <= 6, `${seen.requests}`);
    });
  }

  test('a new connection that is closed without a response fails the request, without a retry', async (t) => {
    const { url, seen } = await serveRaw(t, (socket) => socket.end());
    await assert.rejects(engineFor(t, url).say(), { failure: 'unavailable' });
    assert.equal(seen.requests, 1);
  });

  test('HTTP/1.0 responses, which end with the connection, are read', async (t) => {
    const { url } = await serveRaw(t, (socket) => {
      socket.end(`HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${events}`);
    });
    assert.deepEqual(await engineFor(t, url).stream(), ['Hi', '']);
  });

  test('trailers after a stream are ignored', async (t) => {
    const { url } = await serveRaw(t, (socket) => {
      const size = Buffer.byteLength(events).toString(16);
      const head =
        'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked';
      socket.write(`${head}\r\n\r\n${size}\r\n${events}\r\n0\r\nx-sum: data: 1\r\n\r\n`);
    });
    assert.deepEqual(await engineFor(t, url).stream(), ['Hi', '']);
  });

  test('a response that is compressed without being asked for fails at once with that reason', async (t) => {
    const asked: unknown[] = [];
    const port = await serve(t, (request, response) => {
      asked.push(request.headers['accept-encoding']);
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
      response.write(gzipSync(events));
    });
    const { say, stream } = engineFor(t, `http://127.0.0.1:${port}`);
    for (const ask of [say, stream])
      await assert.rejects(ask(), { failure: 'unavailable', message: /compressed/ });
    assert.deepEqual(asked, ['identity', 'identity']);
  });

  test('a redirect is not followed, because a key belongs to one address', async (t) => {
    const port = await serve(t, (_, response) => {
      response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end();
    });
    const { say, stream } = engineFor(t, `http://127.0.0.1:${port}`, { apiKey: 'k' });
    for (const ask of [say, stream])
      await assert.rejects(ask(), { failure: 'unavailable', message: /status 307/ });
  });

  test('URLs with IPv6 addresses, paths and trailing slashes work', async (t) => {
    const paths: unknown[] = [];
    const listener: RequestListener = (request, response) => {
      paths.push(request.url);
      response.setHeader('content-type', 'application/json').end(answer);
    };
    const port = await serve(t, listener, '::1');
    assert.equal(await engineFor(t, `http://[::1]:${port}/deep/api/v1//`).say(), 'Hi');
    assert.equal(await engineFor(t, `http://[::1]:${port}`).say(), 'Hi');
    assert.deepEqual(paths, ['/deep/api/v1/chat/completions', '/chat/completions']);
  });

  test('a configured header replaces ours in any letter case, and the key replaces both', async (t) => {
    const seen: string[][] = [];
    const port = await serve(t, (request, response) => {
      seen.push(request.rawHeaders);
      response.setHeader('content-type', 'application/json').end(answer);
    });
    const headers = { Authorization: 'Basic x', 'User-Agent': 'mine', 'X-Team': 'a' };
    await engineFor(t, `http://127.0.0.1:${port}`, { apiKey: 'k', headers }).say();
    const names = seen[0]?.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()) ?? [];
    assert.equal(new Set(names).size, names.length, `${names}`);
    assert(seen[0]?.includes('Bearer k') && seen[0].includes('mine'));
  });

  test('an unsigned certificate and a missing TLS are reported as such', async (t) => {
    const secure = createSecureServer({ cert: certificate, key: certificateKey });
    const port = await listen(t, secure);
    await assert.rejects(engineFor(t, `https://127.0.0.1:${port}`).say(), {
      failure: 'unavailable',
      message: /certificate that can't be trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
    });
    const plain = await serve(t, (_, response) => response.end());
    await assert.rejects(engineFor(t, `https://127.0.0.1:${plain}`).say(), {
      failure: 'unavailable',
      message: /does not speak TLS/,
    });
    await assert.rejects(engineFor(t, 'http://127.0.0.1:9').say(), { message: /not listening/ });
  });

  test('a server with a trusted certificate is used over TLS', async (t) => {
    const before = getCACertificates('default');
    setDefaultCACertificates([...before, certificate]);
    t.after(() => setDefaultCACertificates(before));
    const long = 'x'.repeat(300_000);
    const secure = createSecureServer(
      { cert: certificate, key: certificateKey },
      (request, response) => {
        request.resume();
        response.setHeader('content-type', 'application/json');
        response.end(answer.replace('Hi', long));
      },
    );
    let connections = 0;
    secure.on('secureConnection', () => connections++);
    const { say } = engineFor(t, `https://127.0.0.1:${await listen(t, secure)}`);
    for (let round = 0; round < 3; round++) assert.equal(await say(), long);
    assert.equal(connections, 1);
  });

  test('a server without a model list counts as available', async (t) => {
    const port = await serve(t, (_, response) => response.writeHead(404).end('Not Found'));
    const options = upstreamOptions(`http://127.0.0.1:${port}`);
    const { signal } = new AbortController();
    await assert.rejects(probeUpstream(options, signal), { failure: 'rejected' });
  });

  test('the context window is read from wherever the server reports it', async (t) => {
    const rows: Record<string, object> = {
      '/v1/models': {
        data: [
          { id: 'vllm', max_model_len: 4096 },
          { id: 'llama', meta: { n_ctx: 512, n_ctx_train: 131_072 } },
          { id: 'tiny:latest' },
          { id: 'cold:latest' },
        ],
      },
      '/api/ps': { models: [{ name: 'tiny:latest', context_length: 2048 }] },
    };
    const port = await serve(t, ({ url = '' }, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(rows[url])),
    );
    const { signal } = new AbortController();
    const windowOf = async (server: UpstreamOptions['server'], model: string) => {
      const options = upstreamOptions(`http://127.0.0.1:${port}/v1`, { server, model });
      return (await probeUpstream(options, signal)).contextWindow;
    };
    assert.equal(await windowOf('vllm', 'vllm'), 4096);
    assert.equal(await windowOf('llama-server', 'llama'), 512);
    assert.equal(await windowOf('ollama', 'tiny'), 2048);
    assert.equal(await windowOf('ollama', 'cold'), null, 'not loaded yet');
  });

  test('llama-server’s count of one choice is not used for all choices', async (t) => {
    const choice = (index: number) => ({ index, text: 'one two ', finish_reason: 'stop' });
    const body = JSON.stringify({
      choices: [choice(0), choice(1)],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    });
    const port = await serve(t, (_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(body),
    );
    const asking: Task = { kind: 'completion', body: { model: 'm', prompt: 'x', n: 2 } };
    for (const [server, counted] of [
      ['llama-server', 4],
      ['vllm', 2],
    ] as const) {
      const countGenerated = (text: string) => text.match(/\w+/g)?.length ?? 0;
      const options = upstreamOptions(`http://127.0.0.1:${port}`, { server, countGenerated });
      const engine = createUpstreamEngine(options);
      t.after(() => engine.close());
      const { usage } = await engine.respond(asking, newCall());
      assert.equal(usage.completion_tokens, counted, server);
    }
  });
});
