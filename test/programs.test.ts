// What tests may run: the base system and what they name.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFolder } from '#test/support/process.ts';

const module = join(import.meta.dirname, 'support/programs.ts');

/** Runs code as the first process of a run, on a computer that has one more program. */
function runOn(code: string, env: Record<string, string> = {}): unknown {
  const folder = makeFolder();
  const program = join(folder, 'millrace-wheel');
  writeFileSync(program, '#!/bin/sh\necho it turns\n');
  chmodSync(program, 0o755);
  const script = `
    import { spawnSync } from 'node:child_process';
    import { needs } from '${module}';
    const run = (name) => spawnSync(name, { encoding: 'utf8' }).stdout ?? null;
    console.log(JSON.stringify(${code}));
  `;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', script],
    { encoding: 'utf8', env: { PATH: `${folder}:/usr/bin:/bin`, ...env } },
  );
  return status === 0 ? JSON.parse(stdout) : stderr;
}

test('a program is found once it is named, and those of the base system always', () => {
  const code = `[run('millrace-wheel'), needs('millrace-wheel'), run('millrace-wheel'), run('true')]`;
  assert.deepEqual(runOn(code), [null, false, 'it turns\n', '']);
});

test('a missing program is the reason to skip a test', () => {
  assert.equal(runOn(`needs('millrace-mill')`), 'millrace-mill is missing');
  const two = `needs('millrace-mill', 'millrace-wheel', 'millrace-dam')`;
  assert.equal(runOn(two), 'millrace-mill, millrace-dam are missing');
});

test('a missing program is an error in CI, unless the machine is bare on purpose', () => {
  const code = `needs('millrace-mill')`;
  assert.match(String(runOn(code, { CI: 'true' })), /Error: millrace-mill is missing/);
  const bare = { CI: 'true', MILLRACE_TEST_BARE: '1' };
  assert.equal(runOn(code, bare), 'millrace-mill is missing');
});
