// What clients see on the wire, on bare sockets against a whole server: unusual and broken HTTP, requests in pieces,
// pipelining, bodies that never come, clients that leave, and TLS.

import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { request as requestTls } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { createIdentity } from '#cloud/drivers/incus/daemon/client-certificate.ts';
import { createBadHttpHandler } from '#server/bad-http.ts';
import { gatewayModel as model, startGateway } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { makeFolder } from '#test/support/process.ts';
import { propertySeed } from '#test/support/property-seed.ts';
import { createRandom } from '#test/support/random.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const path = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'Wie weit?' }];
/** Refused after it was read whole, so that no model is needed. */
const unknownModel = JSON.stringify({ model: 'nobody-has-it', messages });

function toRequest(key: string, body: string, more = '', start = `POST ${path} HTTP/1.1`): string {
  const head = `${start}\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n`;
  const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return `${head}Content-Type: application/json\r\n${more}${length}\r\n${body}`;
}

function open({ url }: { url: string }): { socket: Socket; received(): string } {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').setNoDelay();
  let received = '';
  socket.on('data', (data: Buffer) => {
    received += data.toString('latin1');
  });
  socket.on('error', () => {});
  return { socket, received: () => received };
}

/** Returns everything received until the connection ends. The client ends its side after the first response. */
async function exchange(server: TestServer, pieces: readonly string[]): Promise<string> {
  const { socket, received } = open(server);
  const closed = once(socket, 'close');
  socket.once('data', () => socket.end());
  await once(socket, 'connect');
  for (const piece of pieces)
    await new Promise<unknown>((done) => socket.write(piece, 'latin1', done));
  await closed;
  return received();
}

const statuses = (received: string) =>
  [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, one]) => one);

/** Splits a text at these positions. */
const cut = (text: string, ...places: number[]) =>
  [0, ...places].map((from, index) => text.slice(from, places[index] ?? text.length));

describe('unusual and broken HTTP', () => {
  let server: TestServer;
  let usual: string;
  before(async () => {
    server = await startTestServer();
    usual = toRequest(server.key, unknownModel);
  });

  test('a client that resets the connection of a CONNECT does not end the server', async () => {
    const { socket } = open(server);
    socket.write('CONNECT / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'data');
    socket.resetAndDestroy();
    // The error of the server's socket, were it not handled, would fail this test before the response.
    assert.equal((await server.fetch('/healthz')).status, 200);
  });

  test('a client that does not close its side does not keep the connection', async () => {
    for (const bytes of ['nonsense\r\n\r\n', 'CONNECT / HTTP/1.1\r\nHost: localhost\r\n\r\n']) {
      const port = Number(new URL(server.url).port);
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      socket.on('error', () => {});
      socket.write(bytes);
      await once(socket.resume(), 'end');
      // Only a connection that is gone refuses bytes.
      await until('the server has closed it', () => {
        socket.write('x');
        return socket.destroyed;
      });
    }
  });

  test('every address of localhost answers broken HTTP alike', async () => {
    const local = await startTestServer({ config: { server: { host: 'localhost' } } });
    const port = Number(new URL(local.url).port);
    for (const { address } of await lookup('localhost', { all: true })) {
      const socket = connect(port, address);
      socket.write('CONNECT / HTTP/1.1\r\nHost: localhost\r\n\r\n');
      const [received] = (await once(socket, 'data')) as [Buffer];
      assert.match(received.toString(), /^HTTP\/1\.1 405 /, address);
      socket.destroy();
    }
  });

  /** 404 is the route's response: the request was parsed. */
  const cases: [string, (key: string) => string, status: string][] = [
    ['an empty line before it', (key) => `\r\n${toRequest(key, unknownModel)}`, '404'],
    ['an empty line after it', (key) => `${toRequest(key, unknownModel)}\r\n`, '404'],
    ['an empty header', (key) => toRequest(key, unknownModel, 'X-Odd:\r\n'), '404'],
    ['a repeated header', (key) => toRequest(key, unknownModel, 'X-Odd: 1\r\nx-odd: 2\r\n'), '404'],
    ['a header named __proto__', (key) => toRequest(key, unknownModel, '__proto__: 2\r\n'), '404'],
    [
      'an upgrade that is not supported',
      (key) => toRequest(key, unknownModel, 'Connection: upgrade\r\nUpgrade: h2c\r\n'),
      '404',
    ],
    ['a chunked body', (key) => toChunked(key, ''), '404'],
    ['a long head', (key) => toRequest(key, unknownModel, `X-Odd: ${'o'.repeat(9000)}\r\n`), '404'],
    [
      'a head over the maximum',
      (key) => toRequest(key, unknownModel, `X-Odd: ${'o'.repeat(20_000)}\r\n`),
      '431',
    ],
    ['a chunked body with a length', (key) => toChunked(key, 'Content-Length: 2\r\n'), '400'],
    ['two lengths', (key) => toRequest(key, unknownModel, 'Content-Length: 3\r\n'), '400'],
    [
      'a length that is not a number',
      (key) => toRequest(key, unknownModel).replace(/(Length: )\d+/, '$12e1'),
      '400',
    ],
    [
      'a negative length',
      (key) => toRequest(key, unknownModel).replace(/(Length: )/, '$1-'),
      '400',
    ],
    ['no body', (key) => toRequest(key, ''), '400'],
    ['a space in a name', (key) => toRequest(key, unknownModel, 'X Odd: 1\r\n'), '400'],
    ['a space before a colon', (key) => toRequest(key, unknownModel, 'X-Odd : 1\r\n'), '400'],
    ['a folded header', (key) => toRequest(key, unknownModel, 'X-Odd: 1\r\n  2\r\n'), '400'],
    ['a bare carriage return', (key) => toRequest(key, unknownModel, 'X-Odd: 1\r2\r\n'), '400'],
    ['a control character', (key) => toRequest(key, unknownModel, 'X-Odd: 1\x012\r\n'), '400'],
  ];
  const toChunked = (key: string, more: string) =>
    toRequest(key, unknownModel, `Transfer-Encoding: chunked\r\n${more}`)
      .replace(/Content-Length: \d{2,}\r\n/, '')
      .replace(unknownModel, `${unknownModel.length.toString(16)}\r\n${unknownModel}\r\n0\r\n\r\n`);

  for (const [name, write, status] of cases)
    test(`${name} is ${status} in this API's error format`, async () => {
      const request = write(server.key);
      const blank = request.indexOf('\r\n\r\n');
      for (const places of [[], [Math.floor(blank / 2)], [blank + 2], [blank + 4]]) {
        const received = await exchange(server, cut(request, ...places));
        assert.deepEqual(statuses(received), [status], `cut at ${places}: ${received}`);
        assert.deepEqual(Object.keys(JSON.parse(received.split('\r\n\r\n')[1] ?? '').error), [
          ...['message', 'type', 'param', 'code'],
        ]);
      }
    });

  test('a request is the same wherever it is split', async () => {
    const expected = comparable(await exchange(server, [usual]));
    assert.match(expected, /^HTTP\/1\.1 404 .*model_not_found/s);
    for (let at = 1; at < usual.length; at += 3)
      assert.equal(comparable(await exchange(server, cut(usual, at))), expected, `cut at ${at}`);
  });

  const comparable = (received: string) =>
    received.replaceAll(/(date|x-request-id|openai-processing-ms): [^\r]+/gi, '$1: any');

  test('random faults in random pieces never cause a 5xx, and the server continues', async () => {
    const random = createRandom(propertySeed);
    const pick = (from: string | readonly string[]) => from[random(from.length)] as string;
    const lines = ['X-Odd: 1\r\n', 'content-length: 3\r\n', 'Connection: close\r\n', ' folded\r\n'];
    const letters = '\r\n\t :,;\0\x7f\x80\xffA0/{}';
    for (let round = 0; round < Number(process.env.MILLRACE_FUZZ ?? 250); round++) {
      let request = usual;
      for (let faults = random(4); faults > 0; faults--) {
        const at = random(request.length);
        const [start, end] = [request.slice(0, at), request.slice(at)];
        const line = request.indexOf('\r\n') + 2;
        request = pick([
          start + pick(letters) + end,
          start + pick(letters) + end.slice(1),
          start + end.slice(random(3)),
          request.slice(0, line) + pick(lines) + request.slice(line),
          request + pick([usual, 'junk']),
        ]);
      }
      const places = Array.from({ length: random(4) }, () => random(request.length));
      const pieces = cut(request, ...places.sort((a, b) => a - b));
      const { socket, received } = open(server);
      for (const piece of pieces)
        if (piece !== '') await new Promise<unknown>((done) => socket.write(piece, 'latin1', done));
      // A fault in a length may leave the server waiting for more.
      socket.end();
      await once(socket, 'close');
      const where = `round ${round}: ${JSON.stringify(pieces)}: ${received()}`;
      for (const status of statuses(received())) assert.match(status ?? '', /^4\d\d$/, where);
    }
    assert.equal((await server.fetch('/v1/models')).status, 200);
  });

  test('a body that breaks off is a 400 in this API’s error format, and is recorded', async () => {
    // A server of its own: refused requests leave a bounded number of rows per minute.
    const server = await startTestServer();
    const session = await server.join();
    const { socket, received } = open(server);
    socket.end(toRequest(server.key, unknownModel).slice(0, -9));
    await once(socket, 'close');
    const [head, text = ''] = received().split('\r\n\r\n');
    assert.match(head ?? '', /^HTTP\/1\.1 400 Bad Request/);
    assert.deepEqual(JSON.parse(text).error, {
      message: 'The request ended before it was complete.',
      type: 'invalid_request_error',
      param: null,
      code: 'invalid_request',
    });
    await until('it has its row', async () => {
      const response = await session('/dashboard/api/usage/requests');
      const { data } = (await response.json()) as { data: { status: string; code: string }[] };
      return data.some(({ status, code }) => status === 'refused' && code === 'incomplete_request');
    });
  });

  test('a body that does not arrive in time is a 408 in this API’s error format', async (context) => {
    const limits = { requestTimeout: 100, headersTimeout: 100, connectionsCheckingInterval: 20 };
    const slow = createServer(limits).on('clientError', createBadHttpHandler());
    const { socket, received } = open({ url: `http://x:${await listen(context, slow)}` });
    socket.write(usual.slice(0, -9));
    await once(socket, 'close');
    assert.match(received(), /^HTTP\/1\.1 408 Request Timeout\r\n/);
    assert.equal(JSON.parse(received().split('\r\n\r\n')[1] ?? '').error.code, 'request_timeout');
  });
});

describe('one connection', () => {
  test('bytes that are not HTTP are refused after every request before them', async (context) => {
    const { server } = await startGateway(context, { upstreams: [{ delayMs: 50 }] });
    const { socket, received } = open(server);
    const chat = toRequest(server.key, JSON.stringify({ model, messages }));
    socket.write(`${chat}${chat}JUNK\0\r\n\r\n`);
    await once(socket, 'close');
    assert.deepEqual(statuses(received()), ['200', '200', '400']);
    assert.equal(received().split('"object":"chat.completion"').length - 1, 2);
  });

  test('pipelined requests are answered in order', async (context) => {
    const { server } = await startGateway(context, { upstreams: [{ eventDelayMs: 5 }] });
    const { socket, received } = open(server);
    const stream = JSON.stringify({ model, messages, stream: true });
    socket.write(toRequest(server.key, stream) + toRequest(server.key, unknownModel));
    await until('both came', () => received().includes('model_not_found'));
    assert(received().indexOf('[DONE]') < received().indexOf('404 Not Found'));
    socket.destroy();
  });

  test('a client’s disconnect is noticed, even after its next request was sent', async (context) => {
    const gateway = await startGateway(context, { upstreams: [{ behaviour: 'never-ends' }] });
    const [upstream] = gateway.upstreams;
    const stream = JSON.stringify({ model, messages, stream: true });
    const { socket, received } = open(gateway.server);
    socket.write(toRequest(gateway.server.key, stream));
    await until('it has begun', () => received().includes('data: '));
    socket.write(toRequest(gateway.server.key, unknownModel), () => socket.destroy());
    await until('the backend is let go', () => upstream?.requests[0]?.state === 'left');
    await until('it is counted as begun', () => isCounted(200));

    upstream?.behave('slow-headers');
    const waiting = open(gateway.server);
    waiting.socket.write(toRequest(gateway.server.key, stream));
    await until('it is asked', () => upstream?.requests.length === 2);
    waiting.socket.destroy();
    await until('the backend is let go', () => upstream?.requests[1]?.state === 'left');
    await until('it is counted as left', () => isCounted(499));

    async function isCounted(status: number): Promise<boolean> {
      const labels = `http_request_method="POST",http_route="${path}",http_response_status_code="${status}"`;
      return (await gateway.metrics()).includes(`duration_seconds_count{${labels}} 1\n`);
    }
  });

  test('a TLS connection has the same streams', async () => {
    const identity = createIdentity('localhost', Date.now());
    const folder = makeFolder();
    const files = { tls_certificate: join(folder, 'tls.crt'), tls_key: join(folder, 'tls.key') };
    writeFileSync(files.tls_certificate, identity.certificate);
    writeFileSync(files.tls_key, identity.key);
    const { url, key } = await startTestServer({ config: { server: files } });
    const { port } = new URL(url);
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const call = requestTls({ port, path, method: 'POST', headers, rejectUnauthorized: false });
    call.end(JSON.stringify({ model, messages, stream: true, max_tokens: 4 }));
    const [response] = await once(call, 'response');
    assert.equal(response.statusCode, 200);
    assert.match((await response.toArray()).join(''), /^data: .*data: \[DONE\]\n\n$/s);
  });
});
