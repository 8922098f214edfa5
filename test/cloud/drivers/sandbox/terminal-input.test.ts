// Input of a pseudo-terminal whose program does not read.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { spawn } from '@lydell/node-pty';
import { TerminalInput } from '#cloud/drivers/sandbox/machine/terminal/terminal-input.ts';
import { until } from '#test/support/until.ts';

test('input waits for a program that does not read, and arrives whole', async (t) => {
  const chunk = Buffer.alloc(10_000, 'text ');
  const count = 50;
  const script = `stty raw -echo; kill -STOP $$; head -c ${count * chunk.length} | sha256sum`;
  const pty = spawn('/bin/sh', ['-c', script], {});
  t.after(() => pty.kill('SIGKILL'));
  let output = '';
  pty.onData((data) => {
    output += data;
  });
  let drains = 0;
  const drained = Promise.withResolvers<void>();
  const input = new TerminalInput((pty as unknown as { fd: number }).fd, () => true);
  input.onDrain(() => {
    drains++;
    drained.resolve();
  });
  const state = () => readFileSync(`/proc/${pty.pid}/stat`, 'utf8');
  await until('the program has stopped', () => state().includes(') T '));
  const taken = Array.from({ length: count }, () => input.write(chunk));
  assert.equal(taken.at(-1), false);
  assert.equal(drains, 0);
  process.kill(pty.pid, 'SIGCONT');
  await drained.promise;
  assert.equal(drains, 1);
  const sent = createHash('sha256');
  for (let left = count; left > 0; left--) sent.update(chunk);
  const digest = sent.digest('hex');
  await until('the program has read everything', () => output.includes(digest));
});
