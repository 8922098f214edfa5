// A sandbox driver in a folder of its own, for one test file; what is still there at the end is removed.

import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { InboundRule, MachineSpec } from '#cloud/drivers/driver.ts';
import { createSandboxDriver, type SandboxOptions } from '#cloud/drivers/sandbox/sandbox.ts';
import { createSshClient, missingProgram } from '#test/support/conformance/ssh-client.ts';

export const noSsh = missingProgram('ssh', 'ssh-keygen');
export const isRoot = process.getuid?.() === 0;

export const sshOpen: InboundRule = {
  protocol: 'tcp',
  portRange: [22, 22],
  sourceNetwork: '0.0.0.0/0',
};

export async function createFixture(options: Partial<SandboxOptions> = {}) {
  const client = createSshClient();
  const dataDir = path.join(tmpdir(), `millrace-sandbox-${randomBytes(6).toString('hex')}`);
  const driver = await createSandboxDriver({ dataDir, ...options });

  function spec(changes: Partial<MachineSpec> = {}): MachineSpec {
    return {
      id: randomBytes(16).toString('hex'),
      node: null,
      hostname: 'machine',
      ip: null,
      vcpus: 1,
      memoryGib: 1,
      storageGib: 8,
      gpus: [],
      authorizedKeys: [client.publicKey],
      filesystems: [],
      userData: null,
      image: 'default',
      firewall: [sshOpen],
      ...changes,
    };
  }

  async function launch(changes: Partial<MachineSpec> = {}) {
    const wanted = spec(changes);
    await driver.launch(wanted);
    const state = await driver.inspect(wanted.id);
    if (state.state !== 'running') throw new Error(`it is ${JSON.stringify(state)}`);
    return { ...state, id: wanted.id, spec: wanted };
  }

  async function close() {
    for (const id of await driver.list()) await driver.terminate(id);
    await driver.close();
    client.close();
    rmSync(dataDir, { recursive: true, force: true });
  }

  return { dataDir, driver, client, spec, launch, close };
}

export type Fixture = Awaited<ReturnType<typeof createFixture>>;
export type Launched = Awaited<ReturnType<Fixture['launch']>>;
