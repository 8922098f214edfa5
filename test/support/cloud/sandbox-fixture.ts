// A sandbox driver in a folder of its own, for one test file; what is still there at the end is removed.

import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { MachineSpec } from '#cloud/drivers/driver.ts';
import { createSandboxDriver, type SandboxOptions } from '#cloud/drivers/sandbox/sandbox.ts';
import { createSshClient, missingProgram } from '#test/support/conformance/ssh-client.ts';
import { newMachineSpec } from './machine-spec.ts';

export const noSsh = missingProgram('ssh', 'ssh-keygen');
export const isRoot = process.getuid?.() === 0;
/** Why tests of the machines' network are skipped; false if they run. */
export const noNetwork =
  noSsh || (!isRoot && 'needs root') || missingProgram('ip', 'nft', 'nsenter', 'perl', 'curl');

export async function createFixture(options: Partial<SandboxOptions> = {}) {
  const client = createSshClient();
  const folder = `millrace-sandbox-${randomBytes(6).toString('hex')}`;
  const dataDir = options.dataDir ?? path.join(tmpdir(), folder);
  const driver = await createSandboxDriver({ ...options, dataDir });

  const spec = (changes: Partial<MachineSpec> = {}) =>
    newMachineSpec(client.publicKey, { hostname: 'machine', storageGib: 1, ...changes });

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
