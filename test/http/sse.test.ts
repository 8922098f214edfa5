// Many open streams and one timer: silence is filled for each of them, and only for those that are silent.

import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Fastify from 'fastify';
import { ClientDisconnect } from '#http/client-disconnect.ts';
import { createEventStreams, type EventStream } from '#http/sse.ts';
import { listen } from '#test/support/listen.ts';
import { until } from '#test/support/until.ts';

test('a stream whose client reads nothing for five minutes is closed', async (test) => {
  const opened = Promise.withResolvers<{ response: ServerResponse; stream: EventStream }>();
  const server = createServer((_, response) => {
    const stream = createEventStreams().open(response, [], {
      signal: new ClientDisconnect(response),
    });
    opened.resolve({ response, stream });
  });
  const port = await listen(test, server);
  test.mock.timers.enable({ apis: ['setInterval'] });
  const client = connect(port, '127.0.0.1');
  client.on('error', () => {}).write('GET / HTTP/1.1\r\nhost: mill\r\n\r\n');
  const { response, stream } = await opened.promise;
  /** Sends until the client's and the server's buffers are full. `room` resolves when they are not. */
  async function fill(): Promise<{ room: Promise<void> }> {
    for (;;) {
      const room = stream.send('x'.repeat(1_000_000));
      if (room !== undefined) return { room };
      await nextTurn();
    }
  }
  const look = (seconds: number) => test.mock.timers.tick(seconds * 1000);

  client.pause();
  const { room } = await fill();
  look(300);
  client.resume();
  await room;
  client.pause();
  await fill();
  // It was read in between, however slowly.
  look(300);
  assert.equal(response.destroyed, false);
  look(1);
  assert.equal(response.destroyed, true);
});

test('events reach the client in chunks, and an HTTP/1.0 client up to the end', async (test) => {
  const server = createServer((_, response) => {
    const stream = createEventStreams().open(response, ['x-one', 1], {
      signal: new ClientDisconnect(response),
    });
    stream.send('née');
    setImmediate(() => {
      stream.send('last');
      stream.end();
    });
  });
  const port = await listen(test, server);
  async function read(version: string): Promise<[head: string, text: string]> {
    const client = connect(port, '127.0.0.1');
    client.write(`GET / HTTP/${version}\r\nhost: mill\r\nconnection: close\r\n\r\n`);
    const all = Buffer.concat(await client.toArray()).toString('utf8');
    return all.split(/\r\n\r\n(.*)/s) as [string, string];
  }
  const [head, text] = await read('1.1');
  assert.match(head, /^HTTP\/1\.1 200 OK\r\nx-one: 1\r\n.*Transfer-Encoding: chunked$/s);
  assert.equal(text, 'c\r\ndata: née\n\n\r\nc\r\ndata: last\n\n\r\n0\r\n\r\n');
  const [oldHead, oldText] = await read('1.0');
  assert.doesNotMatch(oldHead, /transfer-encoding/i);
  assert.equal(oldText, 'data: née\n\ndata: last\n\n');
});

test('a stream that is silent for 15 seconds is pinged, one that speaks is not, an ended one never', async (test) => {
  // Timers are mocked, so that the server would not notice for 70 seconds that a kept connection is idle.
  const app = Fastify({ forceCloseConnections: true });
  const streams = createEventStreams();
  const open = new Map<string, EventStream>();
  app.get<{ Params: { name: string } }>('/:name', (request, reply) => {
    reply.hijack();
    const stream = streams.open(reply.raw, [], { signal: new ClientDisconnect(reply.raw) });
    stream.send('hello');
    open.set(request.params.name, stream);
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  test.after(() => app.close());
  const read = new Map<string, string>();
  async function follow(name: string, signal: AbortSignal): Promise<void> {
    const { body } = await fetch(`${app.listeningOrigin}/${name}`, { signal });
    const text = new TextDecoder();
    for await (const bytes of body ?? [])
      read.set(name, (read.get(name) ?? '') + text.decode(bytes));
  }
  const leaving = new AbortController();
  test.mock.timers.enable({ apis: ['setInterval'] });
  const following = ['silent', 'speaking', 'left'].map((name) =>
    follow(name, name === 'left' ? leaving.signal : new AbortController().signal),
  );
  const left = assert.rejects(following[2] as Promise<void>);
  await until('all are open', () => read.size === 3);
  leaving.abort();
  await left;
  for (let second = 1; second <= 14; second++) {
    test.mock.timers.tick(1000);
    if (second % 5 === 0) open.get('speaking')?.send(`${second}`);
  }
  assert.equal(read.get('silent'), 'data: hello\n\n');
  test.mock.timers.tick(1000);
  await until('it is pinged', () => read.get('silent') === 'data: hello\n\n: ping\n\n');
  await until('it spoke', () => read.get('speaking') === 'data: hello\n\ndata: 5\n\ndata: 10\n\n');
  for (const stream of open.values()) stream.end();
  // An end may wait long for a slow reader: nothing comes after it, and it comes once.
  test.mock.timers.tick(20_000);
  for (const stream of open.values()) stream.end();
  await Promise.all(following.slice(0, 2));
  assert.equal(read.get('silent'), 'data: hello\n\n: ping\n\n');
});
