// A sandbox driver in a folder of its own, for one test file; what is still there at the end is removed.

import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { MachineSpec } from '#cloud/drivers/driver.ts';
import { createSandboxDriver, type SandboxOptions } from '#cloud/drivers/sandbox/sandbox.ts';
import { createSshClient } from '#test/support/conformance/ssh-client.ts';
import { needs } from '#test/support/programs.ts';
import { newMachineSpec } from './machine-spec.ts';
import { isRoot, needsSandbox } from './sandbox-programs.ts';

/** Why tests that reach machines by ssh are skipped; false if they run. */
export const noSsh = needsSandbox('ssh', 'ssh-keygen');
/** Why tests of the machines' network are skipped; false if they run. */
export const needsNetwork = () =>
  noSsh || (!isRoot && 'needs root') || needs('ip', 'nft', 'perl', 'curl');

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
