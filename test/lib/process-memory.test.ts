// The memory of a process with all that it started.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { findTree, readProcesses, sumBytes, toProcess } from '#lib/computer/process-memory.ts';

describe('a process tree', () => {
  const toOne = (pid: number, parent: number, session: number) => ({
    pid,
    parent,
    session,
    bytes: pid,
  });

  test('has descendants, also in sessions of their own, and orphans of its session', () => {
    const processes = [
      ...[toOne(1, 0, 1), toOne(10, 1, 10), toOne(11, 10, 10), toOne(12, 11, 12)],
      ...[toOne(13, 1, 10), toOne(14, 13, 14), toOne(20, 1, 20), toOne(21, 20, 20)],
    ];
    const pids = findTree(processes, 10).map(({ pid }) => pid);
    assert.deepEqual(pids.sort(), [10, 11, 12, 13, 14]);
    assert.equal(sumBytes(findTree(processes, 20)), 41);
    assert.deepEqual(findTree(processes, 99), []);
  });

  test('is read from the kernel, with the memory of its children', async () => {
    const held = 200 * 2 ** 20;
    const hold = `globalThis.held = Buffer.alloc(${held}, 1); console.log('ready'); setInterval(() => {}, 1e6)`;
    const script = `"$0" -e "$1" & wait`;
    const shell = spawn('/bin/sh', ['-c', script, process.execPath, hold], { detached: true });
    await once(shell.stdout, 'data');
    const tree = findTree(await readProcesses(), shell.pid ?? 0);
    process.kill(-(shell.pid ?? 0), 'SIGKILL');
    assert.equal(tree.length, 2);
    const bytes = sumBytes(tree);
    assert(bytes > held && bytes < 2 * held, `${bytes} bytes`);
  });

  test('in a container has the ids that the container sees', () => {
    const status = 'Name:\tx\nPid:\t7\nPPid:\t3\nNSsid:\t5\t1\nVmRSS:\t    2048 kB\n';
    assert.deepEqual(toProcess(status), { pid: 7, parent: 3, session: 5, bytes: 2 * 2 ** 20 });
    assert.equal(toProcess('Name:\tkthreadd\nPid:\t2\nPPid:\t0\n').bytes, 0);
  });
});
