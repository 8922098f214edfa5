// A task that is woken while it looks for work.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WakeableTask } from '#lib/async/wakeable-task.ts';

test('a task that is woken while it runs runs once more, never twice at a time', async () => {
  let [runs, atOnce, most] = [0, 0, 0];
  const task = new WakeableTask(async () => {
    runs++;
    most = Math.max(most, ++atOnce);
    await new Promise(setImmediate);
    atOnce--;
  });
  task.wake();
  for (let again = 0; again < 3; again++) task.wake();
  await task.ended();
  assert.deepEqual({ runs, most }, { runs: 2, most: 1 });
});

test('a task that nobody woke has ended', async () => {
  await new WakeableTask(async () => {}).ended();
});
