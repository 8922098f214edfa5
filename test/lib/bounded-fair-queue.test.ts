// The bounded fair queue: which item is refused when it is full, and what the refusal says.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BoundedFairQueue, QueueRefusal } from '#lib/async/bounded-fair-queue.ts';
import { createRetryAfterEstimator } from '#lib/async/retry-after.ts';
import { createHandClock } from '#test/support/clock.ts';

function startQueue(maxLength: number) {
  const clock = createHandClock();
  const retryAfter = createRetryAfterEstimator(clock);
  const queue = new BoundedFairQueue<Item>({ maxLength, maxWaitMs: 1000 }, clock, retryAfter);
  return { clock, retryAfter, queue };
}

interface Item {
  caller: string;
  priority: number;
  refuse(refusal: QueueRefusal): void;
}

function newItem(caller: string, refusals: string[] = []): Item {
  const refuse = ({ reason }: QueueRefusal) => refusals.push(`${caller} ${reason}`);
  return { caller, priority: 0, refuse };
}

test('a full queue evicts the newest item of the caller that fills it, not the first of another', () => {
  const { queue } = startQueue(4);
  const refusals: string[] = [];
  const items = [0, 1, 2].map(() => newItem('greedy'));
  for (const item of items) queue.enter(item);
  queue.enter(newItem('greedy', refusals));
  queue.enter(newItem('modest'));
  assert.deepEqual(refusals, ['greedy full']);
  assert.equal(queue.size, 4);
  assert.throws(
    () => queue.enter(newItem('greedy')),
    (error) => error instanceof QueueRefusal && error.reason === 'full',
  );
  const left = queue.clear();
  assert.deepEqual(left.slice(0, 3), items);
  assert.deepEqual([left.length, queue.size], [4, 0]);
});

test('a refusal’s retry-after follows the rate of departures', () => {
  const { clock, retryAfter, queue } = startQueue(1);
  retryAfter.start();
  for (let departure = 0; departure < 4; departure++) {
    clock.turn(2000);
    retryAfter.departed();
  }
  queue.enter(newItem('a'));
  assert.throws(() => queue.enter(newItem('a')), { reason: 'full', retryAfterMs: 4000 });
  // The time before the queue became busy again is not counted.
  clock.turn(3_600_000);
  retryAfter.start();
  assert.throws(() => queue.enter(newItem('a')), { reason: 'full', retryAfterMs: 1000 });
});

test('an item that waits past its deadline is refused, and later items are not', () => {
  const { clock, queue } = startQueue(4);
  const refusals: string[] = [];
  queue.enter(newItem('early', refusals));
  clock.turn(600);
  queue.enter(newItem('late', refusals));
  clock.turn(400);
  queue.expire();
  assert.deepEqual([refusals, queue.size], [['early deadline'], 1]);
});

test('an item that left is neither taken nor refused', () => {
  const { clock, queue } = startQueue(4);
  const refusals: string[] = [];
  const item = newItem('a', refusals);
  queue.enter(item);
  assert.equal(queue.leave(item), true);
  assert.equal(queue.leave(item), false);
  clock.turn(5000);
  queue.expire();
  queue.refuseLate(item);
  assert.deepEqual([queue.take(() => true), refusals], [undefined, []]);
});
