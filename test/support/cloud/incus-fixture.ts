// A real LXD daemon with the small image, and drivers on it, for one test file.

import { randomBytes } from 'node:crypto';
import type { MachineSpec, MachineState } from '#cloud/drivers/driver.ts';
import type { IncusOptions } from '#cloud/drivers/incus/context.ts';
import { buildHostImage, smallImage } from '#cloud/drivers/incus/images/image-recipe.ts';
import { createIncusDriver } from '#cloud/drivers/incus/incus.ts';
import { createSshClient } from '#test/support/conformance/ssh-client.ts';
import { type Lxd, startLxd } from '#test/support/lxd/lxd.ts';
import { until } from '#test/support/until.ts';
import { newMachineSpec } from './machine-spec.ts';

export type Running = Extract<MachineState, { state: 'running' }>;

export async function startSmallLxd(): Promise<Lxd> {
  const lxd = await startLxd();
  try {
    await lxd.importImage(await buildHostImage(`${lxd.folder}/image`), smallImage);
    return lxd;
  } catch (error) {
    await lxd.stop();
    throw error;
  }
}

export async function createFixture() {
  const lxd = await startSmallLxd();
  const client = createSshClient();
  const owner = randomBytes(16).toString('hex');
  const messages: string[] = [];
  const closers: (() => Promise<void>)[] = [];

  const options = (changes: Partial<IncusOptions> = {}): IncusOptions => ({
    endpoint: { url: `unix:${lxd.socket}` },
    owner,
    network: lxd.network,
    log: (message) => void messages.push(message),
    ...changes,
  });

  async function open(changes: Partial<IncusOptions> = {}) {
    const driver = await createIncusDriver(options(changes));
    closers.push(() => driver.close());
    return driver;
  }

  const spec = (changes: Partial<MachineSpec> = {}) =>
    newMachineSpec(client.publicKey, { storageGib: 1, firewall: [], ...changes });

  const driver = await open();

  async function running(id: string, of = driver): Promise<Running> {
    let state: MachineState = { state: 'absent' };
    const runs = async () => {
      state = await of.inspect(id).catch(() => state);
      return state.state === 'running';
    };
    await until(`${id} runs`, runs, 120_000);
    return state as unknown as Running;
  }

  async function launch(changes: Partial<MachineSpec> = {}, of = driver) {
    const wanted = spec(changes);
    client.forgetHosts();
    await of.launch(wanted);
    return { ...(await running(wanted.id, of)), id: wanted.id, spec: wanted };
  }

  async function output(at: Running, command: string): Promise<string> {
    const answer = await client.ssh(at, command);
    if (answer.code !== 0) throw new Error(`${command}: ${answer.code} ${answer.stderr}`);
    return answer.stdout.trim();
  }

  async function close() {
    await Promise.all(closers.map((closer) => closer()));
    client.close();
    await lxd.stop();
  }

  return {
    lxd,
    driver,
    client,
    owner,
    messages,
    options,
    open,
    spec,
    running,
    launch,
    output,
    close,
  };
}

export type Fixture = Awaited<ReturnType<typeof createFixture>>;
