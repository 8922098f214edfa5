// The log on a device that takes nothing: the process lives on, and holds no more than its bound.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '../..');

/** Logs 256 MB and prints how much memory that took. */
const script = `
  import { createLogSink } from '#lib/telemetry/log-sink.ts';
  const sink = createLogSink();
  const line = 'x'.repeat(999) + '\\n';
  const before = process.memoryUsage().rss;
  for (let round = 0; round < 256; round++) {
    for (let count = 0; count < 1000; count++) sink.write(line);
    await new Promise((done) => setImmediate(done));
  }
  console.log(Math.round((process.memoryUsage().rss - before) / 2 ** 20));
  sink.close();
`;

test('a full disk neither ends the process nor fills its memory', {
  skip: process.platform === 'linux' ? false : 'only Linux has /dev/full',
}, async () => {
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: root,
    stdio: ['ignore', 'pipe', full],
  });
  closeSync(full);
  let printed = '';
  child.stdout?.on('data', (chunk) => {
    printed += chunk;
  });
  const [code] = await once(child, 'close');
  assert.equal(code, 0);
  assert(Number(printed) < 128, `${printed} MiB more memory`);
});
