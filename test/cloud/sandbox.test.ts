// The sandbox driver against what every driver keeps, as root and, in a process of its own, as an
// ordinary user.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createSandboxDriver } from '../../src/cloud/drivers/sandbox/sandbox.ts';
import { checkDriver } from '../conformance/driver.ts';
import { missingProgram } from '../conformance/ssh-client.ts';

const dataDir = path.join(tmpdir(), `millrace-sandbox-${randomBytes(6).toString('hex')}`);
const isRoot = process.getuid?.() === 0;

checkDriver({
  name: isRoot ? 'sandbox, as root' : 'sandbox, as an ordinary user',
  skip: missingProgram('ssh', 'ssh-keygen', 'ps'),
  create: () => createSandboxDriver({ dataDir }),
  inChild: [
    new URL('../../src/cloud/drivers/sandbox/sandbox.ts', import.meta.url),
    'createSandboxDriver',
    { dataDir },
  ],
  dispose: () => rm(dataDir, { recursive: true, force: true }),
});

const skip = !isRoot && 'already an ordinary user';
const files = ['', '-ssh', '-boot', '-isolation'].map((part) => `sandbox${part}.test.ts`);
for (const file of files) {
  test(`an ordinary user gets the same: ${file}`, { skip, timeout: 120_000 }, async () => {
    const target = fileURLToPath(new URL(file, import.meta.url));
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const child = spawn(process.execPath, ['--test', '--test-reporter=tap', target], {
      // `nobody`: the ssh client wants a user with a name.
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
