// Runs tests of the sandbox driver again as an ordinary user: in `npm test` those that cover most.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isRoot, needsSandbox } from '#test/support/cloud/sandbox-programs.ts';
import { inSoak } from '#test/support/soak.ts';

const skip = isRoot
  ? needsSandbox('ssh', 'ssh-keygen', 'ps', 'pgrep', 'busybox')
  : 'already an ordinary user';
const covering = ['conformance', 'isolation'];
const parts = inSoak(covering, [...covering, 'ssh', 'boot', 'seccomp', 'disk']);
const files = parts.map((part) => `${part}.test.ts`);
for (const file of files) {
  test(`the suite passes as an ordinary user: ${file}`, { skip, timeout: 400_000 }, async () => {
    const target = fileURLToPath(new URL(file, import.meta.url));
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const child = spawn(process.execPath, ['--test', '--test-reporter=tap', target], {
      // The user `nobody`: the ssh client needs a user with a name.
      uid: 65_534,
      gid: 65_534,
      cwd: '/',
      env: { ...env, HOME: '/nonexistent' },
    });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    const code = await new Promise((resolve) => child.on('close', resolve));
    assert.equal(code, 0, output);
    assert.match(output, /# pass [1-9]/);
  });
}
