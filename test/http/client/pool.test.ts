// The connection pool against servers that write every byte themselves: reuse, bounds, failures and backpressure.

import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { ClientConnection } from '#http/client/client-connection.ts';
import { Pool, type PoolOptions } from '#http/client/pool.ts';
import type { ResponseHandler } from '#http/client/response-handler.ts';
import { listen } from '#test/support/listen.ts';
import { until } from '#test/support/until.ts';

const chunked = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n';
const toResponse = (body: string, headers = '') =>
  `HTTP/1.1 200 OK\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`;

/** A server that calls `reply` for every packet, and its sockets. */
async function serve(context: TestContext, reply: (socket: Socket, request: string) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => reply(socket, bytes.toString('latin1')));
  });
  return { port: await listen(context, server), sockets, server };
}

function open(context: TestContext, port: number, changes: Partial<PoolOptions> = {}): Pool {
  const pool = new Pool({
    url: new URL(`http://127.0.0.1:${port}`),
    headers: { 'x-team': 'mill', 'transfer-encoding': 'chunked' },
    maxConnections: null,
    connectMs: 2000,
    maxHeadBytes: 4096,
    ...changes,
  });
  context.after(() => pool.close());
  return pool;
}

/** Records what is received. */
class Recorder implements ResponseHandler<ClientConnection> {
  connection: ClientConnection | null = null;
  text = '';
  /** `complete`, or the code of the error. */
  outcome: string | null = null;
  onSent(connection: ClientConnection): void {
    this.connection = connection;
  }
  onHead(): void {}
  onBody(bytes: Buffer): void {
    this.text += bytes.toString('latin1');
  }
  onEnd(): void {
    this.outcome = 'complete';
  }
  onError(error: Error & { code?: string }): void {
    this.outcome = error.code ?? error.message;
  }
}

function send(pool: Pool, body: string | null = '{}'): Recorder {
  const recorder = new Recorder();
  const method = body === null ? 'GET' : 'POST';
  pool.send({ method, path: '/v1/x', body, headers: { traceparent: '00-1' } }, recorder);
  return recorder;
}

async function finished(recorder: Recorder): Promise<Recorder> {
  await until('the response is over', () => recorder.outcome);
  return recorder;
}

describe('the connection pool', () => {
  test('sends one request after the other on a connection, with its length in bytes', async (t) => {
    const seen: string[] = [];
    const { port, sockets } = await serve(t, (socket, request) => {
      seen.push(request);
      socket.write(toResponse('ok'));
    });
    const pool = open(t, port);
    for (const body of ['{}', '"Größe 👩‍🔧"', null])
      assert.equal((await finished(send(pool, body))).text, 'ok');
    assert.equal(sockets.length, 1);
    const head = `HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nx-team: mill\r\ntraceparent: 00-1\r\n`;
    const encoded = Buffer.from('"Größe 👩‍🔧"').toString('latin1');
    assert.deepEqual(seen, [
      `POST /v1/x ${head}content-length: 2\r\n\r\n{}`,
      `POST /v1/x ${head}content-length: ${encoded.length}\r\n\r\n${encoded}`,
      `GET /v1/x ${head}\r\n`,
    ]);
  });

  const usedOnce: Record<string, string> = {
    closes: toResponse('ok', 'connection: close\r\n'),
    'sends more than the response': `${toResponse('ok')}HTTP/1.1 200 OK\r\n`,
    'keeps idle connections for two seconds': toResponse('ok', 'keep-alive: timeout=2\r\n'),
  };
  for (const [name, response] of Object.entries(usedOnce)) {
    test(`uses a connection once if the server ${name}`, async (t) => {
      const { port, sockets } = await serve(t, (socket) => socket.write(response));
      const pool = open(t, port);
      assert.equal((await finished(send(pool))).text, 'ok');
      assert.equal((await finished(send(pool))).text, 'ok');
      assert.equal(sockets.length, 2);
      await until('both are closed', () => sockets.every(({ closed }) => closed));
    });
  }

  test('closes an idle connection before the server’s keep-alive timeout', async (t) => {
    const response = toResponse('ok', 'keep-alive: timeout=3\r\n');
    const { port, sockets } = await serve(t, (socket) => socket.write(response));
    const pool = open(t, port);
    await finished(send(pool));
    await until('the connection is closed', () => sockets[0]?.closed);
    await finished(send(pool));
    assert.equal(sockets.length, 2);
  });

  test('closes an idle connection on which the server sends something', async (t) => {
    const { port, sockets } = await serve(t, (socket) => socket.write(toResponse('ok')));
    await finished(send(open(t, port)));
    sockets[0]?.write('HTTP/1.1 408 Request Timeout\r\n\r\n');
    await until('it is closed', () => sockets[0]?.closed, 1000);
  });

  test('tells a stale connection from a new one that closes before the response', async (t) => {
    let requests = 0;
    const { port } = await serve(t, (socket) => {
      if (++requests === 1) socket.write(toResponse('ok'));
      else socket.destroy();
    });
    const pool = open(t, port);
    assert.equal((await finished(send(pool))).outcome, 'complete');
    assert.equal((await finished(send(pool))).outcome, 'stale_connection');
    assert.equal((await finished(send(pool))).outcome, 'cut_off');
  });

  test('fails a response that is cut off, also on a reused connection', async (t) => {
    let requests = 0;
    const { port } = await serve(t, (socket) => {
      if (++requests === 1) socket.write(toResponse('ok'));
      else socket.end(`${chunked}2\r\nhi\r\n`);
    });
    const pool = open(t, port);
    await finished(send(pool));
    const sent = await finished(send(pool));
    assert.deepEqual([sent.text, sent.outcome], ['hi', 'cut_off']);
  });

  test('keeps to its maximum: further requests wait in order, and cancelled ones are not sent', async (t) => {
    const waiting: Socket[] = [];
    const { port, sockets } = await serve(t, (socket) => waiting.push(socket));
    const pool = open(t, port, { maxConnections: 2 });
    const sent = Array.from({ length: 5 }, () => send(pool));
    await until('two are asked', () => waiting.length === 2);
    pool.cancel(sent[2] as Recorder);
    for (let answered = 0; answered < 4; answered++)
      (await until('one is asked', () => waiting.shift())).write(toResponse('ok'));
    await until('all are answered', () => sent.filter(({ outcome }) => outcome).length === 4);
    assert.equal(sent[2]?.outcome, null);
    assert.equal(sockets.length, 2);
  });

  test('fails every waiting request if it can’t connect', async (t) => {
    const { port, server } = await serve(t, () => {});
    server.close();
    const pool = open(t, port, { maxConnections: 1 });
    const sent = await Promise.all([send(pool), send(pool), send(pool)].map(finished));
    assert.deepEqual(
      sent.map(({ outcome }) => outcome),
      Array(3).fill('ECONNREFUSED'),
    );
  });

  test('fails a request whose connection is not established in time', async (t) => {
    // The server accepts, but never answers the TLS handshake.
    const { port } = await serve(t, () => {});
    const url = new URL(`https://127.0.0.1:${port}`);
    const sent = await finished(send(open(t, port, { url, connectMs: 50 })));
    assert.equal(sent.outcome, 'connect_timeout');
  });

  test('stops reading from a server while paused', async (t) => {
    const size = 64 * 1024 * 1024;
    const { port, sockets } = await serve(t, (socket, request) => {
      if (request.startsWith('GET')) socket.write(toResponse('ok'));
      else {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`);
        socket.write(Buffer.alloc(size, 'x'));
      }
    });
    const pool = open(t, port);
    const sent = send(pool);
    await until('the body starts', () => sent.text !== '');
    sent.connection?.pause();
    const before = sent.text.length;
    // Other connections are read meanwhile.
    for (let count = 0; count < 10; count++)
      assert.equal((await finished(send(pool, null))).text, 'ok');
    assert.equal(sent.text.length, before);
    assert(before < size && (sockets[0]?.writableLength ?? 0) > 0);
    sent.connection?.resume();
    await finished(sent);
    assert.equal(sent.text.length, size);
  });

  test('resumes a connection whose handler paused on the last packet', async (t) => {
    const { port, sockets } = await serve(t, (socket) => socket.write(toResponse('ok')));
    const pool = open(t, port);
    const first = new Recorder();
    first.onBody = () => first.connection?.pause();
    pool.send({ method: 'GET', path: '/', body: null, headers: undefined }, first);
    await finished(first);
    assert.equal((await finished(send(pool))).text, 'ok');
    assert.equal(sockets.length, 1);
  });

  test('fails all requests when it is closed, and later ones at once', async (t) => {
    const { port, sockets } = await serve(t, () => {});
    const pool = open(t, port, { maxConnections: 1 });
    const sent = [send(pool), send(pool)];
    await until('it is connected', () => sockets.length === 1);
    pool.close();
    sent.push(send(pool));
    assert.deepEqual(
      sent.map(({ outcome }) => outcome),
      ['closed', 'closed', 'closed'],
    );
    await until('it is closed', () => sockets[0]?.closed);
  });

  test('closes an aborted connection without calling the handler', async (t) => {
    const { port, sockets } = await serve(t, (socket) => socket.write(`${chunked}2\r\nhi\r\n`));
    const sent = send(open(t, port));
    await until('it begins', () => sent.text === 'hi');
    sent.connection?.abort();
    await until('it is closed', () => sockets[0]?.closed);
    assert.equal(sent.outcome, null);
  });
});
