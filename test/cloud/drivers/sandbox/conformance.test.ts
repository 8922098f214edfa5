// Runs the driver contract against the sandbox driver.

import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createSandboxDriver } from '#cloud/drivers/sandbox/sandbox.ts';
import { isRoot, needsSandbox } from '#test/support/cloud/sandbox-programs.ts';
import { checkDriver } from '#test/support/conformance/driver.ts';

const dataDir = path.join(tmpdir(), `millrace-sandbox-${randomBytes(6).toString('hex')}`);

checkDriver({
  name: isRoot ? 'sandbox, as root' : 'sandbox, as an ordinary user',
  skip: needsSandbox('ssh', 'ssh-keygen', 'ps', 'busybox'),
  create: () => createSandboxDriver({ dataDir }),
  inChild: [
    new URL('../../../../src/cloud/drivers/sandbox/sandbox.ts', import.meta.url),
    'createSandboxDriver',
    { dataDir },
  ],
  dispose: () => rm(dataDir, { recursive: true, force: true }),
});
