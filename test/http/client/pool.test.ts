// Our HTTP/1.1 client before servers that say every byte themselves: answers of every form cut anywhere, what
// is no HTTP, connections that are used again or must not be, and their bound.

import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Handler, Link } from '#http/client/connection.ts';
import { createPool, type Pool, type PoolOptions } from '#http/client/pool.ts';
import { ResponseHeads } from '#http/client/response-head.ts';
import { ResponseReader } from '#http/client/response-parser.ts';
import { listen } from '#test/support/listen.ts';
import { until } from '#test/support/until.ts';

const maxHeadBytes = 4096;
const chunked = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n';
const toAnswer = (body: string, more = '') =>
  `HTTP/1.1 200 OK\r\n${more}content-length: ${body.length}\r\n\r\n${body}`;

/** What is heard of an answer that comes in these packets, before the connection ends. */
function hear(packets: Iterable<string>) {
  let status = 0;
  let headers: IncomingHttpHeaders = {};
  let text = '';
  const reader = new ResponseReader(
    {
      head(...head) {
        [status, headers] = head;
      },
      body(bytes) {
        text += bytes.toString('latin1');
        // Whoever needs what was handed on reads this.
        bytes.fill('!');
      },
      end: () => {},
    },
    new ResponseHeads(),
    maxHeadBytes,
  );
  // All packets come in the same memory.
  const memory = Buffer.alloc(1024);
  for (const packet of packets) {
    const length = memory.write(packet, 'latin1');
    reader.read(memory.subarray(0, length));
    memory.fill('?');
  }
  reader.close();
  const { isReusable = true, keepAliveMs = null } = reader.head ?? {};
  const { isOver } = reader;
  return { status, headers, text, isOver, isReusable, keepAliveMs };
}

describe('an HTTP/1.1 answer', () => {
  const early = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n';
  const forms: Record<string, [answer: string, body: string, isReusable: boolean]> = {
    'of a known length': [toAnswer('hello'), 'hello', true],
    'without a body': ['HTTP/1.1 204 No Content\r\n\r\n', '', true],
    'with an empty one': ['HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n', '', true],
    'in chunks': [
      `${chunked}5\r\nhello\r\n1\r\n \r\nA\r\nten bytes!\r\n0\r\n\r\n`,
      'hello ten bytes!',
      true,
    ],
    'whose chunks look like their frames': [
      `${chunked}4\r\n0\r\n\r\r\n2\r\n\r\n\r\n0\r\n\r\n`,
      '0\r\n\r\r\n',
      true,
    ],
    'with more about its chunks': [`${chunked}5;a="b"\r\nhello\r\n000;last\r\n\r\n`, 'hello', true],
    'with trailers': [`${chunked}5\r\nhello\r\n0\r\na: 1\r\nb: 2\r\n\r\n`, 'hello', true],
    'after others that are none yet': [early + toAnswer('hi'), 'hi', true],
    'until the connection ends': ['HTTP/1.1 200 OK\r\na: b\r\n\r\nhello', 'hello', false],
    'of a server that closes': [toAnswer('hi', 'connection: Close\r\n'), 'hi', false],
    'of an old server': ['HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi', 'hi', false],
    'of an old server that stays': [
      'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi',
      'hi',
      true,
    ],
  };

  for (const [name, [answer, body, isReusable]] of Object.entries(forms)) {
    test(`${name} is the same however it is cut`, () => {
      const uncut = hear([answer]);
      assert.deepEqual([uncut.text, uncut.isOver, uncut.isReusable], [body, true, isReusable]);
      assert.deepEqual(hear(answer), uncut, 'byte by byte');
      for (let first = 0; first <= answer.length; first++)
        for (let second = first; second <= answer.length; second++) {
          const packets = [
            answer.slice(0, first),
            answer.slice(first, second),
            answer.slice(second),
          ];
          assert.deepEqual(hear(packets.filter(Boolean)), uncut, `cut at ${first} and ${second}`);
        }
    });
  }

  test('has its headers as Node gives them', () => {
    const lines = ['A:1', 'X-B:  two  ', 'a: 3', 'empty:', 'constructor: c', '__proto__: d'];
    const { headers } = hear([toAnswer('', `${lines.join('\r\n')}\r\n`)]);
    const values = ['a', 'x-b', 'empty', 'constructor'].map((name) => headers[name]);
    assert.deepEqual(values, ['1, 3', 'two', '', 'c']);
    assert.equal(Object.getPrototypeOf(headers), Object.prototype);
  });

  test('says how long its server keeps a connection', () => {
    assert.equal(hear([toAnswer('', 'Keep-Alive: max=5, timeout=7\r\n')]).keepAliveMs, 7000);
    assert.equal(hear([toAnswer('', 'Keep-Alive: soon\r\n')]).keepAliveMs, null);
  });

  test('that was cut off is not taken for a whole one', () => {
    const cutOff = [
      toAnswer('hello').slice(0, -1),
      'HTTP/1.1 200 OK\r\ncontent-le',
      `${chunked}5\r\nhello`,
      `${chunked}5\r\nhello\r\n0\r\n`,
    ];
    for (const text of cutOff) assert.equal(hear([text]).isOver, false, JSON.stringify(text));
  });

  test('that is no HTTP is refused, and so is what could be read in two ways', () => {
    const wrong = [
      'SSH-2.0-OpenSSH_9.2\r\n\r\n',
      'HTTP/2 200\r\n\r\n',
      'HTTP/1.1 2000 OK\r\n\r\n',
      'HTTP/1.1 099 OK\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n',
      toAnswer('', 'no colon\r\n'),
      toAnswer('', 'a: 1\r\n folded\r\n'),
      toAnswer('', 'name : 1\r\n'),
      toAnswer('', ': 1\r\n'),
      toAnswer('', 'a: 1\nb: 2\r\n'),
      toAnswer('', 'a: 1\rb: 2\r\n'),
      toAnswer('', 'a: \0\r\n'),
      'HTTP/1.1 200 OK\rtransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      `${chunked}0\r\nHTTP/1.1 200 OK\r\n\r\n`,
      toAnswer('', 'content-length: 5\r\n'),
      toAnswer('0\r\n\r\n', 'transfer-encoding: chunked\r\n'),
      'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 0x5\r\n\r\nhello',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      `${chunked}g\r\n`,
      `${chunked}\r\n`,
      `${chunked}-5\r\nhello\r\n`,
      `${chunked}5 \r\nhello\r\n`,
      `${chunked}5\nhello\r\n`,
      `${chunked}5\r\nhello!\r\n0\r\n\r\n`,
      `${chunked}123456789\r\n`,
      `${toAnswer('hi')}!`,
    ];
    for (const text of wrong)
      assert.throws(() => hear([text]), { code: 'not_http' }, JSON.stringify(text));
  });

  const line = `x: ${'y'.repeat(100)}\r\n`;
  const endless: Record<string, [begin: string, more: string, code: string]> = {
    headers: ['HTTP/1.1 200 OK\r\n', line, 'head_too_large'],
    'answers ahead of it': ['', `HTTP/1.1 103 Hints\r\n${line}\r\n`, 'head_too_large'],
    trailers: [`${chunked}0\r\n`, line, 'head_too_large'],
    'words about a chunk': [`${chunked}5;`, 'x'.repeat(100), 'not_http'],
    'digits of a size': [chunked, '0'.repeat(100), 'not_http'],
  };
  for (const [name, [begin, more, code]] of Object.entries(endless)) {
    test(`with endless ${name} is refused in time`, () => {
      let bytes = 0;
      function* say() {
        yield begin;
        for (; bytes < 1_000_000; bytes += more.length) yield more;
      }
      assert.throws(() => hear(say()), { code });
      assert(bytes < maxHeadBytes + 500, `${bytes} bytes were read`);
    });
  }
});

/** A server that answers by `reply` whatever it is sent, and what became of its connections. */
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
  const pool = createPool({
    url: new URL(`http://127.0.0.1:${port}`),
    headers: { 'x-team': 'mill', 'transfer-encoding': 'chunked' },
    connections: null,
    connectMs: 2000,
    maxHeadBytes,
    ...changes,
  });
  context.after(() => pool.destroy());
  return pool;
}

class Told implements Handler {
  link: Link | null = null;
  text = '';
  outcome: 'answered' | 'stale' | string | null = null;
  sent(link: Link): void {
    this.link = link;
  }
  head(): void {}
  body(bytes: Buffer): void {
    this.text += bytes.toString('latin1');
  }
  end(): void {
    this.outcome = 'answered';
  }
  failed(error: Error & { code?: string }, isStale: boolean): void {
    this.outcome = isStale ? 'stale' : (error.code ?? error.message);
  }
}

function ask(pool: Pool, body: string | null = '{}'): Told {
  const told = new Told();
  const method = body === null ? 'GET' : 'POST';
  pool.send({ method, path: '/v1/x', body, headers: { traceparent: '00-1' } }, told);
  return told;
}

async function hearOut(told: Told): Promise<Told> {
  await until('it is over', () => told.outcome);
  return told;
}

describe('connections to an HTTP/1.1 server', () => {
  test('carry one request after the other, each with its length in bytes', async (t) => {
    const seen: string[] = [];
    const { port, sockets } = await serve(t, (socket, request) => {
      seen.push(request);
      socket.write(toAnswer('ok'));
    });
    const pool = open(t, port);
    for (const body of ['{}', '"Größe 👩‍🔧"', null])
      assert.equal((await hearOut(ask(pool, body))).text, 'ok');
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
    'that closes': toAnswer('ok', 'connection: close\r\n'),
    'that says more than it should': `${toAnswer('ok')}HTTP/1.1 200 OK\r\n`,
    'that keeps none for long': toAnswer('ok', 'keep-alive: timeout=2\r\n'),
  };
  for (const [name, answer] of Object.entries(usedOnce)) {
    test(`of a server ${name} are used once`, async (t) => {
      const { port, sockets } = await serve(t, (socket) => socket.write(answer));
      const pool = open(t, port);
      assert.equal((await hearOut(ask(pool))).text, 'ok');
      assert.equal((await hearOut(ask(pool))).text, 'ok');
      assert.equal(sockets.length, 2);
      await until('both are closed', () => sockets.every(({ closed }) => closed));
    });
  }

  test('are not used again when their server’s time is over, and let go soon after', async (t) => {
    const answer = toAnswer('ok', 'keep-alive: timeout=3\r\n');
    const { port, sockets } = await serve(t, (socket) => socket.write(answer));
    const pool = open(t, port);
    await hearOut(ask(pool));
    await sleep(1100);
    await hearOut(ask(pool));
    assert.equal(sockets.length, 2);
    await until('both are let go', () => sockets.every(({ closed }) => closed), 5000);
  });

  test('are let go when their server speaks unasked', async (t) => {
    const { port, sockets } = await serve(t, (socket) => socket.write(toAnswer('ok')));
    await hearOut(ask(open(t, port)));
    sockets[0]?.write('HTTP/1.1 408 Request Timeout\r\n\r\n');
    await until('it is closed', () => sockets[0]?.closed, 1000);
  });

  test('that end before an answer are told apart: used before, or not', async (t) => {
    let requests = 0;
    const { port } = await serve(t, (socket) => {
      if (++requests === 1) socket.write(toAnswer('ok'));
      else socket.destroy();
    });
    const pool = open(t, port);
    assert.equal((await hearOut(ask(pool))).outcome, 'answered');
    assert.equal((await hearOut(ask(pool))).outcome, 'stale');
    assert.equal((await hearOut(ask(pool))).outcome, 'cut_off');
  });

  test('that end in the middle of an answer fail it, also on a connection used before', async (t) => {
    let requests = 0;
    const { port } = await serve(t, (socket) => {
      if (++requests === 1) socket.write(toAnswer('ok'));
      else socket.end(`${chunked}2\r\nhi\r\n`);
    });
    const pool = open(t, port);
    await hearOut(ask(pool));
    const told = await hearOut(ask(pool));
    assert.deepEqual([told.text, told.outcome], ['hi', 'cut_off']);
  });

  test('are no more than they may be: others wait in turn, and who leaves is not sent', async (t) => {
    const waiting: Socket[] = [];
    const { port, sockets } = await serve(t, (socket) => waiting.push(socket));
    const pool = open(t, port, { connections: 2 });
    const told = Array.from({ length: 5 }, () => ask(pool));
    await until('two are asked', () => waiting.length === 2);
    pool.forget(told[2] as Told);
    for (let answered = 0; answered < 4; answered++)
      (await until('one is asked', () => waiting.shift())).write(toAnswer('ok'));
    await until('all are answered', () => told.filter(({ outcome }) => outcome).length === 4);
    assert.equal(told[2]?.outcome, null);
    assert.equal(sockets.length, 2);
  });

  test('that can’t be had fail everybody who waits for one', async (t) => {
    const { port, server } = await serve(t, () => {});
    server.close();
    const pool = open(t, port, { connections: 1 });
    const told = await Promise.all([ask(pool), ask(pool), ask(pool)].map(hearOut));
    assert.deepEqual(
      told.map(({ outcome }) => outcome),
      Array(3).fill('ECONNREFUSED'),
    );
  });

  test('that are not there in time fail who waits', async (t) => {
    // It accepts, but never greets.
    const { port } = await serve(t, () => {});
    const url = new URL(`https://127.0.0.1:${port}`);
    const told = await hearOut(ask(open(t, port, { url, connectMs: 50 })));
    assert.equal(told.outcome, 'connect_timeout');
  });

  test('hold a server back while nobody reads', async (t) => {
    const size = 64 * 1024 * 1024;
    const { port, sockets } = await serve(t, (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`);
      socket.write(Buffer.alloc(size, 'x'));
    });
    const told = ask(open(t, port));
    await until('it begins', () => told.text !== '');
    told.link?.pause();
    await sleep(200);
    const before = told.text.length;
    await sleep(100);
    assert.equal(told.text.length, before);
    assert(before < size && (sockets[0]?.writableLength ?? 0) > 0);
    told.link?.resume();
    await hearOut(told);
    assert.equal(told.text.length, size);
  });

  test('go on for the next request when the last packet of an answer was held back', async (t) => {
    const { port, sockets } = await serve(t, (socket) => socket.write(toAnswer('ok')));
    const pool = open(t, port);
    const first = new Told();
    first.body = () => first.link?.pause();
    pool.send({ method: 'GET', path: '/', body: null, headers: undefined }, first);
    await hearOut(first);
    assert.equal((await hearOut(ask(pool))).text, 'ok');
    assert.equal(sockets.length, 1);
  });

  test('end with the pool, and so do requests; later ones are refused', async (t) => {
    const { port, sockets } = await serve(t, () => {});
    const pool = open(t, port, { connections: 1 });
    const told = [ask(pool), ask(pool)];
    await until('it is connected', () => sockets.length === 1);
    pool.destroy();
    told.push(ask(pool));
    assert.deepEqual(
      told.map(({ outcome }) => outcome),
      ['closed', 'closed', 'closed'],
    );
    await until('it is closed', () => sockets[0]?.closed);
  });

  test('that are broken off are closed, and nobody hears of it', async (t) => {
    const { port, sockets } = await serve(t, (socket) => socket.write(`${chunked}2\r\nhi\r\n`));
    const told = ask(open(t, port));
    await until('it begins', () => told.text === 'hi');
    told.link?.abort();
    await until('it is closed', () => sockets[0]?.closed);
    assert.equal(told.outcome, null);
  });
});
