// Many open streams and one timer: silence is filled for each of them, and only for those that are silent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { ClientGone } from '../src/lib/client-gone.ts';
import { NodeReply, type Reply } from '../src/lib/reply.ts';
import { createEventStreams, type EventStream } from '../src/lib/sse.ts';
import { until } from './support/until.ts';

test('a stream whose client takes nothing for five minutes is cut off', (test) => {
  test.mock.timers.enable({ apis: ['setInterval'] });
  let [isFull, cuts] = [true, 0];
  let giveRoom = () => {};
  const reply: Reply = {
    status: 200,
    isBegun: true,
    isGone: false,
    get isFull() {
      return isFull;
    },
    onGone: () => {},
    onRoom(listener) {
      giveRoom = listener;
    },
    send: () => {},
    begin: () => {},
    write: () => {},
    end: () => {},
    cut: () => void cuts++,
  };
  const stream = createEventStreams().open(reply, [], new ClientGone(reply));
  stream.send('much');
  test.mock.timers.tick(300_000);
  // However slow, it was read; and is full again before anybody looks.
  giveRoom();
  test.mock.timers.tick(300_000);
  assert.equal(cuts, 0);
  isFull = false;
  test.mock.timers.tick(1000);
  isFull = true;
  test.mock.timers.tick(300_000);
  assert.equal(cuts, 0);
  test.mock.timers.tick(1000);
  assert.equal(cuts, 1);
});

test('a stream that is silent for 15 seconds is pinged, one that speaks is not, an ended one never', async (test) => {
  const app = Fastify();
  const streams = createEventStreams();
  const open = new Map<string, EventStream>();
  app.get<{ Params: { name: string } }>('/:name', (request, reply) => {
    reply.hijack();
    const raw = new NodeReply(reply.raw);
    const stream = streams.open(raw, [], new ClientGone(raw));
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
