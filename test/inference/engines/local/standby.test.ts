// The process that is started ahead while a model sleeps.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createStandby,
  type ModelProcessEvents,
  startModelProcess,
} from '#inference/engines/local/parent/model-process.ts';
import { until } from '#test/support/until.ts';

const silent: ModelProcessEvents = { message() {}, exit() {}, output() {} };

function startCounting() {
  const pids: (number | null)[] = [];
  const standby = createStandby((events) => {
    const process = startModelProcess(events, 1);
    pids.push(process.pid);
    return process;
  });
  return { pids, standby };
}

test('a process that was started ahead is taken once, and its messages arrive', async (t) => {
  const { pids, standby } = startCounting();
  standby.prepare();
  standby.prepare();
  assert.equal(pids.length, 1);
  const answered = Promise.withResolvers<void>();
  const taken = standby.take({
    ...silent,
    message: ({ kind }) => kind === 'pong' && answered.resolve(),
  });
  t.after(() => taken.close());
  assert.equal(taken.pid, pids[0]);
  taken.send({ kind: 'ping' });
  await answered.promise;
  const next = standby.take(silent);
  t.after(() => next.close());
  assert.notEqual(next.pid, taken.pid);
});

test('a process that died while it waited is not taken', async (t) => {
  const { pids, standby } = startCounting();
  standby.prepare();
  const [first] = pids as [number];
  process.kill(first, 'SIGKILL');
  await until('it is gone', () => !isAlive(first));
  // Its exit is reported after its output.
  await until('another is started', () => {
    standby.prepare();
    return pids.length === 2;
  });
  const taken = standby.take(silent);
  t.after(() => taken.close());
  assert.equal(taken.pid, pids[1]);
});

test('a process that was not taken ends with the engine', async () => {
  const { pids, standby } = startCounting();
  standby.prepare();
  await standby.close();
  assert.equal(isAlive(pids[0] ?? 0), false);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
