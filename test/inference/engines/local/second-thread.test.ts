// The second thread of the pool, in a process with a pool of two.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

const module = import.meta.resolve('#inference/engines/local/child/second-thread.ts');

/** Runs the code in a process of its own, whose pool has two threads. */
function run(code: string) {
  const program = `
    import { pbkdf2 } from 'node:crypto';
    import { createSecondThread } from ${JSON.stringify(module)};
    const thread = createSecondThread();
    const job = (name, rounds, then = () => {}) =>
      pbkdf2('a', 'b', rounds, 8, 'sha1', () => {
        process.stdout.write(name + ' ');
        then();
      });
    const exit = () => process.exit(0);
    ${code}`;
  const args = ['--input-type=module', '--eval', program];
  const env = { ...process.env, UV_THREADPOOL_SIZE: '2' };
  const { status, stdout } = spawnSync(process.execPath, args, { env, timeout: 60_000 });
  return { status, done: stdout.toString().trim() };
}

test('while it is parked, no job overtakes an earlier one', () => {
  const code = `job('batch', 300_000); thread.park(); thread.park(); job('sample', 1, exit);`;
  assert.deepEqual(run(code), { status: 0, done: 'batch sample' });
});

test('once it is released, a job does not wait for a longer one, until it is parked again', () => {
  const released = `thread.park(); job('batch', 2_000_000, again); job('sample', 1); thread.release();`;
  const again = `const again = () => { thread.park(); job('next', 300_000); job('last', 1, exit); };`;
  assert.deepEqual(run(`${again} ${released}`), { status: 0, done: 'sample batch next last' });
});

test('a process with a parked thread can exit, also because of an error', () => {
  assert.deepEqual(run(`thread.park(); job('done', 1, exit);`), { status: 0, done: 'done' });
  const failing = `thread.park(); job('done', 1, () => { throw new Error('failed'); });`;
  assert.deepEqual(run(failing), { status: 1, done: 'done' });
});
