// Connections taken before Node's HTTP server sees them: whatever a client sends and in whatever pieces, it hears
// what a plain server of Node says. Besides that: who answers what, slow and absent clients, and how they end.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Admit, takeConnections, takeRequests } from '../src/lib/http1/front.ts';
import { RequestHeads } from '../src/lib/http1/request-head.ts';
import type { Reply } from '../src/lib/reply.ts';
import { createRandom } from './cloud/random.ts';
import { listen } from './support/listen.ts';
import { propertySeed } from './support/property-seed.ts';
import { until } from './support/until.ts';

const body = '{"question": "Wie weit?"}';
const toRequest = (more = '', path = '/wanted', text = body) =>
  `POST ${path} HTTP/1.1\r\nHost: mill\r\n${more}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;

/** Says what it was asked. `toServer` counts what came to Node's server. */
function createEcho() {
  const counts = { toServer: 0 };
  const say = (path: string, headers: object, text: string) =>
    JSON.stringify({ path, headers: Object.entries(headers).sort(), text });
  const admit: Admit = ({ path, headers }, reply) => {
    if (path !== '/wanted') return null;
    return (parts) => {
      if (parts === null) return;
      const text = say(path, headers, Buffer.concat(parts).toString('latin1'));
      const length = Buffer.byteLength(text);
      reply.send(200, ['content-length', length], text, length === text.length);
    };
  };
  const route: RequestListener = async (request, response) => {
    counts.toServer++;
    const parts: Buffer[] | null = await request.toArray().catch(() => null);
    if (parts === null) return;
    const text = say(request.url ?? '', request.headers, Buffer.concat(parts).toString('latin1'));
    response.writeHead(200, ['content-length', Buffer.byteLength(text)]).end(text);
  };
  return { counts, admit, route };
}

const options = { keepAliveTimeout: 500, requestTimeout: 500, requireHostHeader: false };

function createNodeServer(route: RequestListener): Server {
  return createServer(options, route).on(
    'clientError',
    ({ code }: NodeJS.ErrnoException, socket) => {
      if (socket.writable) socket.end(`HTTP/1.1 400 ${code}\r\n\r\n`);
    },
  );
}

async function openFront(test: TestContext, admit: Admit, route: RequestListener = () => {}) {
  const server = createNodeServer(route);
  takeConnections(server, admit);
  return { server, port: await listen(test, server) };
}

/** All that is heard until the connection ends, which the client begins once all is sent and answered. */
async function converse(port: number, pieces: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  let heard = '';
  socket.on('data', (data: Buffer) => {
    heard += data.toString('latin1');
  });
  socket.on('error', () => {});
  const closed = once(socket, 'close');
  await once(socket, 'connect');
  for (const piece of pieces) {
    socket.write(piece, 'latin1');
    await turn();
    await turn();
  }
  socket.end();
  await closed;
  return undated(heard);
}

const undated = (heard: string) => heard.replaceAll(/Date: [^\r]+/g, 'Date: now');

async function ask(port: number, request = usual) {
  const socket = connect(port, '127.0.0.1');
  let heard = '';
  socket.on('data', (data: Buffer) => {
    heard += data.toString('latin1');
  });
  socket.on('error', () => {});
  socket.write(request, 'latin1');
  return { socket, heard: () => heard };
}

/** The same text in pieces, cut at these places. */
const cut = (text: string, ...places: number[]) =>
  [0, ...places].map((from, index) => text.slice(from, places[index] ?? text.length));

const usual = toRequest('Content-Type: application/json\r\nX-Odd:\t pad \xe9 \t\r\n');

describe('a server and the one in front of it say the same', () => {
  const requests: Record<string, string> = {
    'a usual request': usual,
    'one for the server': toRequest('', '/unwanted'),
    'two in a row': usual + usual,
    'three, one of them for the server': usual + toRequest('', '/unwanted') + usual,
    'junk behind a request': `${usual}hello there\r\n\r\n`,
    chunks: 'POST /wanted HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
    'chunks and a length':
      'POST /wanted HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
    'a length twice': toRequest('Content-Length: 3\r\n'),
    'the same length twice': toRequest(`Content-Length: ${body.length}\r\n`),
    'no length': 'POST /wanted HTTP/1.1\r\nHost: mill\r\n\r\n',
    'no body': toRequest('', '/wanted', ''),
    'a length that is no number': 'POST /wanted HTTP/1.1\r\nContent-Length: 2e1\r\n\r\n{}',
    'a negative length': 'POST /wanted HTTP/1.1\r\nContent-Length: -2\r\n\r\n{}',
    'a header twice': toRequest('X-Odd: 1\r\nx-odd: 2\r\n'),
    'a header named as objects have it': toRequest('constructor: 1\r\n__proto__: 2\r\n'),
    'the end of the connection asked for': toRequest('Connection: close\r\n'),
    'the connection kept': toRequest('Connection: Keep-Alive\r\n'),
    'an upgrade nobody wants': toRequest('Connection: upgrade\r\nUpgrade: h2c\r\n'),
    'the end of it asked for as proxies do': toRequest('Proxy-Connection: close\r\n'),
    'an empty line behind it': `${usual}\r\n`,
    'empty lines between two': `${usual}\r\n\r\n${usual}`,
    'an expectation': toRequest('Expect: 100-continue\r\n'),
    'HTTP/1.0': usual.replace('HTTP/1.1', 'HTTP/1.0'),
    'another method': 'GET /wanted HTTP/1.1\r\nHost: mill\r\n\r\n',
    'a space in a name': toRequest('X Odd: 1\r\n'),
    'a space before a colon': toRequest('X-Odd : 1\r\n'),
    'a folded header': toRequest('X-Odd: 1\r\n  2\r\n'),
    'a bare line feed': toRequest('X-Odd: 1\n'),
    'a bare carriage return': toRequest('X-Odd: 1\r2\r\n'),
    'a control character': toRequest('X-Odd: 1\x012\r\n'),
    'an empty header': toRequest('X-Odd:\r\nX-Even: \r\n'),
    'an empty line first': `\r\n${usual}`,
    'a head beyond all bounds': toRequest(`X-Odd: ${'o'.repeat(20_000)}\r\n`),
    'a long head': toRequest(`X-Odd: ${'o'.repeat(9000)}\r\n`),
    'a body that breaks off': usual.slice(0, -3),
    'a head that breaks off': usual.slice(0, 40),
    nothing: '',
    'no HTTP': 'hello there\r\n\r\n',
  };

  /** Whether Node answers what is whole before it sees the junk behind it is a matter of its timing. */
  const refusal = /HTTP\/1\.1 400 .*$/s;
  const essence = (heard: string) => refusal.exec(heard)?.[0] ?? heard;
  const assertSame = (inFront: string, plain: string, where: string) =>
    assert.equal(essence(inFront), essence(plain), where);

  async function openBoth(test: TestContext) {
    const echo = createEcho();
    const plain = await listen(test, createNodeServer(createEcho().route));
    const front = await openFront(test, echo.admit, takeRequests(echo.admit, echo.route));
    return { plain, front: front.port, echo };
  }

  for (const [name, request] of Object.entries(requests)) {
    test(name, async (context) => {
      const { plain, front } = await openBoth(context);
      const middle = Math.floor(request.length / 2);
      const blank = request.indexOf('\r\n\r\n');
      for (const places of [[], [middle], [blank + 2], [blank + 4], [1, blank + 5]]) {
        const pieces = cut(request, ...places.filter((at) => at > 0 && at < request.length));
        assertSame(await converse(front, pieces), await converse(plain, pieces), `${places}`);
      }
    });
  }

  test('a usual request cut anywhere, and what is not usual only where it must', async (context) => {
    const { plain, front, echo } = await openBoth(context);
    const expected = await converse(plain, [usual]);
    assert.match(expected, /^HTTP\/1\.1 200 OK\r\n.*"text":".*weit/s);
    for (let at = 1; at < usual.length; at++)
      assert.equal(await converse(front, cut(usual, at)), expected, `cut at ${at}`);
    assert.equal(echo.counts.toServer, 0);
    await converse(front, [toRequest('', '/unwanted')]);
    assert.equal(echo.counts.toServer, 1);
  });

  test('one after the other on a connection, each a little unlike the last', async (context) => {
    const { plain, front, echo } = await openBoth(context);
    const sized = (length: string, text = body, more = '') =>
      `POST /wanted HTTP/1.1\r\nhost: mill\r\nCONTENT-length:${length}\r\nx-a: 1\r\n${more}\r\n${text}`;
    const alike = [
      usual,
      usual,
      toRequest('', '/wanted', 'x'.repeat(12_345)),
      toRequest('', '/wanted', 'y'),
      toRequest('X-Odd: content-length: 7\r\n', '/wanted', body),
      toRequest('X-Odd: content-length: 8\r\n', '/wanted', body),
      sized(' 025'),
      sized('1', 'z'),
      sized('1 ', 'z'),
      sized('2 ', 'zz'),
      sized('25', body, 'x-b: 2\r\n'),
      sized('25', body, 'x-b: 3\r\n'),
      sized('25', body, ''),
    ];
    const answers = (heard: string) => heard.split('"text":').length - 1;
    const inTurn = async (port: number, requests: readonly string[]) => {
      const { socket, heard } = await ask(port, '');
      for (const [index, request] of requests.entries()) {
        socket.write(request, 'latin1');
        await until('it is answered', () => answers(heard()) > index || heard().includes(' 400 '));
      }
      socket.destroy();
      return undated(heard());
    };
    assert.equal(await inTurn(front, alike), await inTurn(plain, alike));
    assert.equal(echo.counts.toServer, 0);
    for (const odd of [
      '',
      ' ',
      '-1',
      '1x',
      '1\r\nContent-Length: 1',
      '1, 1',
      '\x011',
      '9'.repeat(40),
    ]) {
      const requests = [sized('1', 'z'), sized(odd, 'z')];
      assertSame(await inTurn(front, requests), await inTurn(plain, requests), odd);
    }
  });

  test('requests with random faults in random pieces', async (context) => {
    const { plain, front } = await openBoth(context);
    const random = createRandom(propertySeed);
    const pick = (from: string | readonly string[]) => from[random(from.length)] as string;
    const lines = ['X-Odd: 1\r\n', 'content-length: 3\r\n', 'Connection: close\r\n', ' folded\r\n'];
    const letters = '\r\n\t :,;\0\x7f\x80\xffA0/{}';
    for (let round = 0; round < Number(process.env.MILLRACE_FUZZ ?? 250); round++) {
      let request = usual;
      for (let faults = random(4); faults > 0; faults--) {
        const at = random(request.length);
        const [before, after] = [request.slice(0, at), request.slice(at)];
        const line = request.indexOf('\r\n') + 2;
        request = pick([
          before + pick(letters) + after,
          before + pick(letters) + after.slice(1),
          before + after.slice(random(3)),
          request.slice(0, line) + pick(lines) + request.slice(line),
          request + pick([usual, 'junk', toRequest('', '/unwanted')]),
        ]);
      }
      const places = Array.from({ length: random(4) }, () => random(request.length)).sort(
        (a, b) => a - b,
      );
      const pieces = cut(request, ...places).filter((piece) => piece !== '');
      const where = `round ${round}: ${JSON.stringify(pieces)}`;
      assertSame(await converse(front, pieces), await converse(plain, pieces), where);
    }
  });
});

describe('a connection in front of a server', () => {
  /** Gives the test the reply of each request whose body is there. */
  function collect() {
    const replies: Reply[] = [];
    const admit: Admit = (_, reply) => () => replies.push(reply);
    return { replies, admit };
  }

  test('waits for whoever decides, and for the rest meanwhile', async (context) => {
    const echo = createEcho();
    const decide = Promise.withResolvers<void>();
    const { port } = await openFront(
      context,
      async (...request) => {
        await decide.promise;
        return echo.admit(...request);
      },
      echo.route,
    );
    const [head, rest] = cut(usual, usual.indexOf('\r\n\r\n') + 6) as [string, string];
    const wanted = await ask(port, head);
    const unwanted = await ask(port, toRequest('', '/unwanted') + usual);
    await turn();
    wanted.socket.write(rest);
    await turn();
    assert.equal(wanted.heard() + unwanted.heard(), '');
    decide.resolve();
    await until('all are answered', () => unwanted.heard().split('HTTP/1.1').length === 3);
    await until('the other one, too', () => wanted.heard().includes('weit'));
    assert.equal(echo.counts.toServer, 2);
  });

  test('leaves to the server what nobody could decide', async (context) => {
    const { counts, route } = createEcho();
    const { port } = await openFront(context, async () => Promise.reject(new Error('no')), route);
    const { heard } = await ask(port);
    await until('it is answered', () => heard().includes('weit'));
    assert.equal(counts.toServer, 1);
  });

  test('asks nobody twice about the same request', async (context) => {
    let asked = 0;
    const { route } = createEcho();
    const admit: Admit = () => {
      asked++;
      return null;
    };
    const { port } = await openFront(context, admit, takeRequests(admit, route));
    const { socket, heard } = await ask(port);
    await until('it is answered', () => heard().includes('weit'));
    assert.equal(asked, 1);
    // The next one is a new one.
    socket.write(usual, 'latin1');
    await until('it is answered', () => heard().split('HTTP/1.1').length === 3);
    assert.equal(asked, 2);
  });

  test('survives whoever decides', async (context) => {
    const { counts, route } = createEcho();
    const admit: Admit = () => {
      throw new Error('no');
    };
    const { port } = await openFront(context, admit, takeRequests(admit, route));
    const { heard } = await ask(port);
    await until('it is answered', () => heard().includes('weit'));
    assert.equal(counts.toServer, 1);
  });

  test('takes the next request after an empty line, too', async (context) => {
    const { counts, admit, route } = createEcho();
    const { port } = await openFront(context, admit, route);
    const { socket, heard } = await ask(port, `${usual}\r\n`);
    await until('it is answered', () => heard().includes('weit'));
    socket.write('\r\n');
    await turn();
    socket.write(usual, 'latin1');
    await until('both are', () => heard().split('weit').length === 3);
    assert.equal(counts.toServer, 0);
  });

  test('reads blanks in a header in no more time than other letters', () => {
    const head = (inside: string) =>
      Buffer.from(`POST / HTTP/1.1\r\ncontent-length: 2\r\nx: a${inside}b\t\r\n\r\n{}`);
    const timeOf = (packet: Buffer) => {
      const begunMs = performance.now();
      for (let times = 0; times < 200; times++)
        assert(new RequestHeads().read(packet, packet.length - 2)?.headers.x !== undefined);
      return performance.now() - begunMs;
    };
    const [blanks, letters] = [timeOf(head(' '.repeat(8000))), timeOf(head('x'.repeat(8000)))];
    // By a regular expression it took some 70 ms for each.
    assert(blanks < 20 * letters + 100, `${blanks} ms, ${letters} ms`);
  });

  test('answers no more requests than its client reads answers of', async (context) => {
    let answers = 0;
    const text = 'x'.repeat(1_000_000);
    const admit: Admit = (_, reply) => () => {
      answers++;
      reply.send(200, ['content-length', text.length], text, true);
    };
    let toServer = 0;
    const { port } = await openFront(context, admit, (request) => {
      toServer++;
      request.resume();
    });
    const { socket } = await ask(port);
    socket.pause();
    for (let sent = 1; toServer === 0; sent++) {
      await until('somebody takes it', () => answers === sent || toServer > 0);
      assert(sent < 30, 'answers for nobody');
      socket.write(usual, 'latin1');
    }
  });

  test('waits for who reads slowly, however long it takes', async (context) => {
    const { replies, admit } = collect();
    const { port } = await openFront(context, admit);
    const { socket, heard } = await ask(port);
    const reply = await until('it is there', () => replies[0]);
    const text = 'x'.repeat(20_000_000);
    reply.send(200, ['content-length', text.length], text, true);
    socket.pause();
    // Several times as long as a quiet connection is kept.
    await new Promise((done) => setTimeout(done, 4000));
    socket.resume();
    await until('all is there', () => heard().length > text.length);
    await once(socket, 'close');
  });

  test('sees a client leave that has sent more meanwhile', async (context) => {
    const { replies, admit } = collect();
    const { port } = await openFront(context, admit);
    const { socket } = await ask(port);
    const reply = await until('it is there', () => replies[0]);
    let isGone = false;
    reply.onGone(() => {
      isGone = true;
    });
    for (let packet = 0; packet < 3; packet++) {
      socket.write('more');
      await new Promise((done) => setTimeout(done, 10));
    }
    socket.destroy();
    await until('it is seen', () => isGone);
  });

  test('is not broken off by an answer that is over', async (context) => {
    const { replies, admit } = collect();
    const { port } = await openFront(context, admit);
    const { socket, heard } = await ask(port);
    const reply = await until('it is there', () => replies[0]);
    reply.send(200, ['content-length', 2], 'ok', true);
    reply.cut();
    await until('it is there', () => heard().endsWith('ok'));
    socket.write(usual, 'latin1');
    const next = await until('the next one is, too', () => replies[1]);
    next.send(200, ['content-length', 3], 'yes', true);
    await until('it is answered', () => heard().endsWith('yes'));
  });

  test('sends blocks with their lengths, and an end', async (context) => {
    const { replies, admit } = collect();
    const { port } = await openFront(context, admit);
    const { heard } = await ask(port);
    const reply = await until('it is there', () => replies[0]);
    assert.equal(reply.isBegun, false);
    reply.begin(201, ['x-one', 1, 'x-two', 'é']);
    reply.write('hello');
    reply.write(' ');
    reply.end('you');
    assert.equal(reply.status, 201);
    await until('it is whole', () => heard().endsWith('0\r\n\r\n'));
    const [head, text] = heard().split(/\r\n\r\n(.*)/s) as [string, string];
    assert.match(head, /^HTTP\/1\.1 201 Created\r\nx-one: 1\r\nx-two: \xe9\r\nDate: .*GMT\r\n/);
    assert.match(
      head,
      /Connection: keep-alive\r\nKeep-Alive: timeout=0\r\nTransfer-Encoding: chunked$/,
    );
    assert.equal(text, '5\r\nhello\r\n1\r\n \r\n3\r\nyou\r\n0\r\n\r\n');
  });

  test('lets no header break out of its line', async (context) => {
    const { replies, admit } = collect();
    const { port } = await openFront(context, admit);
    await ask(port);
    const reply = await until('it is there', () => replies[0]);
    assert.throws(() => reply.begin(200, ['x-one', 'a\r\nx-two: b']), /x-one/);
    assert.throws(() => reply.begin(200, ['x-one', '世']), /x-one/);
    assert.equal(reply.isBegun, false);
    reply.cut();
  });

  test('is full before a client that does not read, and says when there is room', async (context) => {
    const { replies, admit } = collect();
    const { port } = await openFront(context, admit);
    const { socket, heard } = await ask(port);
    const reply = await until('it is there', () => replies[0]);
    socket.pause();
    reply.begin(200, []);
    let written = 0;
    for (; !reply.isFull; written += 65_536) reply.write('x'.repeat(65_536));
    let hasRoom = false;
    reply.onRoom(() => {
      hasRoom = true;
    });
    await turn();
    assert.equal(hasRoom, false);
    socket.resume();
    await until('there is room', () => hasRoom);
    reply.end('');
    await until('it is whole', () => heard().endsWith('0\r\n\r\n'));
    assert.equal(heard().split('x').length - 1, written);
  });

  test('tells of a client that leaves, and lets nobody wait for room', async (context) => {
    const { replies, admit } = collect();
    const { port } = await openFront(context, admit);
    const { socket } = await ask(port);
    const reply = await until('it is there', () => replies[0]);
    const told: string[] = [];
    reply.onGone(() => told.push('gone'));
    reply.onRoom(() => told.push('room'));
    socket.destroy();
    await until('it is told', () => told.length === 2);
    assert.equal(reply.isGone, true);
    reply.onGone(() => told.push('later'));
    assert.deepEqual(told.sort(), ['gone', 'later', 'room']);
  });

  test('tells nobody who has all', async (context) => {
    const { replies, admit } = collect();
    const { port, server } = await openFront(context, admit);
    const { socket, heard } = await ask(port);
    const reply = await until('it is there', () => replies[0]);
    reply.onGone(() => assert.fail('it had all'));
    reply.send(200, ['content-length', 2], 'ok', true);
    await until('it is there', () => heard().endsWith('ok'));
    socket.destroy();
    await until('it is gone', async () => (await countOf(server)) === 0);
  });

  test('ends when it was quiet for long, or a body does not come', async (context) => {
    const { replies, admit } = collect();
    const { port } = await openFront(context, admit);
    const silent = await ask(port, '');
    const answered = await ask(port);
    const half = await ask(port, usual.slice(0, -1));
    const busy = await ask(port);
    await until('both are there', () => replies.length === 2);
    replies[0]?.send(200, ['content-length', 2], 'ok', true);
    await Promise.all([silent, answered, half].map(({ socket }) => once(socket, 'close')));
    assert.match(half.heard(), /^HTTP\/1\.1 400 ERR_HTTP_REQUEST_TIMEOUT/);
    assert.equal(busy.socket.closed, false);
  });

  test('closes with its server: when idle, or all of them', async (context) => {
    const { replies, admit } = collect();
    const { port, server } = await openFront(context, admit);
    const [idle, busy] = [await ask(port, ''), await ask(port)];
    await until(
      'they are there',
      async () => replies.length === 1 && (await countOf(server)) === 2,
    );
    server.closeIdleConnections();
    await once(idle.socket, 'close');
    assert.equal(await countOf(server), 1);
    server.closeAllConnections();
    await once(busy.socket, 'close');
  });
});

const countOf = (server: Server) =>
  new Promise<number>((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
