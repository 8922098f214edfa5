// Items of the background in fair queues.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BoundedFairQueue } from '#lib/async/bounded-fair-queue.ts';
import { backgroundPriority, FairQueue } from '#lib/async/fair-queue.ts';
import { createRetryAfterEstimator } from '#lib/async/retry-after.ts';
import { systemClock } from '#lib/clock.ts';

test('an item of the background goes only when no other may, however long it waits', () => {
  const queue = new FairQueue<string>();
  queue.push('batch', 'line', backgroundPriority);
  for (let count = 0; count < 100; count++) {
    queue.push('a', 'urgent', 0);
    queue.push('b', 'later', 1000);
    assert.notEqual(
      queue.take(() => true),
      'line',
    );
    assert.notEqual(
      queue.take(() => true),
      'line',
    );
  }
  assert.equal(
    queue.take(() => true),
    'line',
  );
});

test('a full queue refuses items of the background first, and takes none', () => {
  const clock = systemClock;
  const limits = { maxLength: 2, maxWaitMs: 1000 };
  const queue = new BoundedFairQueue(limits, clock, createRetryAfterEstimator(clock));
  const refused: string[] = [];
  const toItem = (caller: string, priority: number) => ({
    caller,
    priority,
    refuse: () => refused.push(caller),
  });
  queue.enter(toItem('batch', backgroundPriority));
  queue.enter(toItem('a', 0));
  queue.enter(toItem('a', 0));
  assert.deepEqual(refused, ['batch']);
  assert.throws(() => queue.enter(toItem('batch', backgroundPriority)), /maximum/);
  assert.equal(queue.size, 2);
});
