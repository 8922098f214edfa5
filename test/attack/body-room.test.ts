// The room for large bodies is bounded in total and per caller, is granted in turns, and is released once.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BodyRoom } from '#http/body/room.ts';
import { Refusal } from '#lib/errors.ts';

const bounds = {
  maxBytes: 100,
  maxCallerBytes: 50,
  maxWaiting: 4,
  maxCallerWaiting: 3,
  waitMs: 1000,
};
const { signal: never } = new AbortController();

const isRefusal = (code: string) => (error: unknown) =>
  error instanceof Refusal && error.code === code && error.retryAfterMs !== null;

describe('room for large bodies', () => {
  test('a caller whose share is used up waits, and others do not', async () => {
    const room = new BodyRoom(bounds);
    const first = await room.enter('a', 50, never);
    const second = room.enter('a', 10, never);
    await room.enter('b', 50, never);
    assert.deepEqual([room.bytes, room.waiting], [100, 1]);
    first.leave();
    await second;
    assert.deepEqual([room.bytes, room.waiting], [60, 0]);
  });

  test('waiting callers take turns', async () => {
    const room = new BodyRoom({ ...bounds, maxCallerBytes: 100 });
    const lease = await room.enter('a', 100, never);
    const order: string[] = [];
    const enter = async (caller: string) => {
      const one = await room.enter(caller, 100, never);
      order.push(caller);
      one.leave();
    };
    const all = [enter('a'), enter('a'), enter('b')];
    lease.leave();
    await Promise.all(all);
    assert.deepEqual(order, ['a', 'b', 'a']);
  });

  test('a lease may shrink, and is released once', async () => {
    const room = new BodyRoom(bounds);
    const lease = await room.enter('a', 50, never);
    lease.shrink(20);
    lease.shrink(40);
    assert.equal(room.bytes, 20);
    lease.leave();
    lease.leave();
    assert.equal(room.bytes, 0);
  });

  test('the queue is bounded per caller and in total', async () => {
    const room = new BodyRoom(bounds);
    const leaving = new AbortController();
    await Promise.all([room.enter('a', 50, never), room.enter('b', 50, never)]);
    const wait = (caller: string) => room.enter(caller, 50, leaving.signal);
    const waiting = [wait('a'), wait('a'), wait('a')];
    await assert.rejects(wait('a'), isRefusal('rate_limited'));
    waiting.push(wait('b'));
    await assert.rejects(wait('b'), isRefusal('overloaded'));
    leaving.abort(new Error('gone'));
    for (const one of waiting) await assert.rejects(one, /gone/);
    assert.equal(room.waiting, 0);
  });

  test('a wait beyond the timeout is refused', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const room = new BodyRoom(bounds);
    await room.enter('a', 50, never);
    const waiting = room.enter('a', 50, never);
    t.mock.timers.tick(bounds.waitMs);
    await assert.rejects(waiting, isRefusal('overloaded'));
    assert.deepEqual([room.bytes, room.waiting], [50, 0]);
  });
});
