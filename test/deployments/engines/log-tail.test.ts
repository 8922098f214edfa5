// The last lines of an engine's output.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogTail } from '#deployments/engines/log-tail.ts';

const linesOf = (...chunks: string[]) => {
  const tail = createLogTail();
  for (const chunk of chunks) tail.write(Buffer.from(chunk));
  return tail.lines();
};

test('lines arrive in pieces, with either end of line', () => {
  assert.deepEqual(linesOf('one\ntw', 'o\r\nthree\r', '\nfour'), ['one', 'two', 'three', 'four']);
});

test('of a progress bar only the last state is kept', () => {
  const bar = Array.from({ length: 101 }, (_, at) => `\rLoading: ${at}%|${'#'.repeat(at)}`);
  assert.deepEqual(linesOf('start\n', ...bar.slice(0, 44)), [
    'start',
    `Loading: 43%|${'#'.repeat(43)}`,
  ]);
  assert.deepEqual(linesOf(bar.join(''), '\nend\n'), [`Loading: 100%|${'#'.repeat(100)}`, 'end']);
  assert.deepEqual(linesOf('10%\r', '20%\r', '30%'), ['30%']);
});
