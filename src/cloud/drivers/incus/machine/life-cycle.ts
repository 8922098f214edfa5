// Creates, restarts and removes machines at the daemon. A crash of the server or the daemon may interrupt any
// step: a machine without the mark of a finished launch is finished, or removed and created again.

import { setTimeout } from 'node:timers/promises';
import { DriverError, type MachineSpec } from '#cloud/drivers/driver.ts';
import type { IncusContext } from '#cloud/drivers/incus/context.ts';
import type { DaemonClient, Operation } from '#cloud/drivers/incus/daemon/client.ts';
import { DaemonError } from '#cloud/drivers/incus/daemon/daemon-response.ts';
import { findImage } from '#cloud/drivers/incus/images/images.ts';
import {
  type AddressPlan,
  chooseNetworkAddress,
  isUsable,
} from '#cloud/drivers/incus/network/addresses.ts';
import type { PrivateNic } from '#cloud/drivers/incus/network/nics.ts';
import { providePrivateNetwork } from '#cloud/drivers/incus/network/private-networks.ts';
import { toSiblingRoutes } from '#cloud/drivers/incus/network/siblings.ts';
import { handOver } from '#cloud/drivers/incus/storage/volumes.ts';
import { provideWeights } from '#cloud/drivers/incus/storage/weight-volumes.ts';
import { readFirstBoot } from '#cloud/drivers/shared/first-boot.ts';
import {
  type DaemonInstance,
  instanceName,
  instancePath,
  isSettled,
  settledKey,
  toCreateRequest,
} from './instance.ts';
import { needsFiles, pushFiles, toMachineSeed } from './seed.ts';

/** How long the daemon may be busy with an earlier request for the same machine. */
const busyDeadlineMs = 120_000;
const retryMs = 100;

export async function launchMachine(context: IncusContext, spec: MachineSpec): Promise<void> {
  const { client, instances } = context;
  const path = instancePath(instanceName(spec.id));
  const there = await instances.refresh(spec.id);
  if (there && isSettled(there)) {
    if (there.status !== 'Running') await startMachine(context, spec.id);
    await instances.refresh(spec.id);
    return;
  }
  // The daemon may still be executing what an earlier process requested.
  if (there) await waitForWork(client, there.name);
  const now = there && (await instances.refresh(spec.id));
  if (now?.status !== 'Running') {
    if (now) await removeMachine(context, spec.id);
    await makeMachine(context, spec, path);
    await startMachine(context, spec.id);
  }
  if (!context.filesystems.mapsUser) {
    await handOver(
      client,
      path,
      spec.filesystems.map(({ mountPoint }) => mountPoint),
    );
  }
  await client.run('PATCH', path, { body: { config: { [settledKey]: 'true' } } });
  await instances.refresh(spec.id);
}

async function makeMachine(context: IncusContext, spec: MachineSpec, path: string) {
  const { client, plan, filesystems } = context;
  const image = await findImage(client, context.images, spec.image);
  if (image.type === 'virtual-machine' && !context.canVirtualise) {
    throw new DriverError('impossible', `Image "${spec.image}" needs KVM, which the host lacks.`);
  }
  const weights = await provideWeights(context, spec);
  const firstBoot = spec.userData === null ? '' : await readFirstBoot(spec.userData);
  const address = await reserveAddress(context, spec);
  const routes = context.firewall.enforced ? toSiblingRoutes(plan) : '';
  const privateNic = await reservePrivateNic(context, spec);
  const seed = toMachineSeed(spec, plan, address, { routes, privateNic, firstBoot });
  const body = toCreateRequest(spec, {
    owner: context.owner,
    pool: context.pool,
    profiles: context.profiles,
    address,
    plan,
    privateNic,
    seed,
    image,
    filesystems: {
      devices: { ...filesystems.devices(spec.filesystems), ...weights },
      mapsUser: filesystems.mapsUser && spec.filesystems.length > 0,
    },
  });
  await context.firewall.set(spec.id, address, spec);
  await client.run('POST', '/1.0/instances', {
    query: { target: spec.node ?? context.target },
    body,
  });
  if (image.type === 'container' && (await needsFiles(client, path))) {
    await pushFiles(client, context.flavor, path, seed);
  }
}

async function reserveAddress(context: IncusContext, spec: MachineSpec): Promise<string> {
  const { plan } = context;
  if (spec.ip !== null) {
    if (isUsable(plan, spec.ip)) return spec.ip;
    throw new DriverError('impossible', `${spec.ip} is not for machines on ${plan.network}.`);
  }
  return chooseFree(context, plan, spec.id);
}

async function reservePrivateNic(
  context: IncusContext,
  spec: MachineSpec,
): Promise<PrivateNic | null> {
  const plan = await providePrivateNetwork(context, spec);
  return plan ? { plan, address: await chooseFree(context, plan, spec.id) } : null;
}

async function chooseFree({ client, reserved }: IncusContext, plan: AddressPlan, id: string) {
  const all = await client.get<DaemonInstance[]>('/1.0/instances', { recursion: '1' });
  const own = reservation(id, plan.network);
  const taken = new Set([
    ...[...reserved].filter(([key]) => key !== own).map(([, address]) => address),
    ...all.flatMap(({ devices }) => Object.values(devices).map((one) => one['ipv4.address'] ?? '')),
    ...all.map(({ config }) => config['user.millrace.address'] ?? ''),
  ]);
  const address = chooseNetworkAddress(plan, id, taken);
  reserved.set(own, address);
  return address;
}

const reservation = (id: string, network: string) => `${id} ${network}`;

async function startMachine({ client }: IncusContext, id: string) {
  const name = instanceName(id);
  const body = { action: 'start', timeout: -1 };
  const deadline = performance.now() + busyDeadlineMs;
  for (;;) {
    try {
      await client.run('PUT', `${instancePath(name)}/state`, { body });
      return;
    } catch (error) {
      if (!(error instanceof DaemonError)) throw error;
      if (/already running/i.test(error.message)) return;
      // A machine that shut itself down counts as stopped a moment before the daemon is done with it.
      if (!/busy running/i.test(error.message) || performance.now() > deadline) throw error;
      await waitForWork(client, name);
      await setTimeout(retryMs);
    }
  }
}

export async function restartMachine(context: IncusContext, spec: MachineSpec): Promise<void> {
  const { client, instances } = context;
  const path = instancePath(instanceName(spec.id));
  const there = await instances.refresh(spec.id);
  if (!there) throw new DriverError('impossible', 'There is no machine left to restart.');
  await context.firewall.set(spec.id, there.config['user.millrace.address'] ?? null, spec);
  if (there.status !== 'Running') {
    await startMachine(context, spec.id);
  } else {
    const restart = (force: boolean, timeout: number) =>
      client.run('PUT', `${path}/state`, { body: { action: 'restart', force, timeout } });
    // A system that ignores the request is power-cycled.
    await restart(false, context.gracefulSeconds).catch(async (error) => {
      if (!(error instanceof DaemonError)) throw error;
      const now = await instances.refresh(spec.id);
      if (now?.status === 'Running') await restart(true, -1);
      else await startMachine(context, spec.id);
    });
  }
  await instances.refresh(spec.id);
}

/** Succeeds if the machine is already gone. */
export async function removeMachine(context: IncusContext, id: string): Promise<void> {
  const { client, instances } = context;
  const name = instanceName(id);
  const path = instancePath(name);
  const deadline = performance.now() + busyDeadlineMs;
  for (;;) {
    const there = await instances.refresh(id);
    if (!there) break;
    try {
      if (there.status !== 'Stopped') {
        const body = { action: 'stop', force: true, timeout: -1 };
        await client.run('PUT', `${path}/state`, { body }).catch(ignoreStopped);
      }
      await client.run('DELETE', path);
    } catch (error) {
      if (!(error instanceof DaemonError)) throw error;
      if (performance.now() > deadline) throw error;
      // The daemon is busy with an earlier request, or is already removing it.
      await waitForWork(client, name);
      await setTimeout(retryMs);
    }
  }
  await context.firewall.set(id, null, null);
  for (const key of context.reserved.keys())
    if (key.startsWith(reservation(id, ''))) context.reserved.delete(key);
}

function ignoreStopped(error: unknown) {
  const stopped = /already stopped|not running|is stopped/i;
  if (!(error instanceof DaemonError && stopped.test(error.message))) throw error;
}

/** Waits until no operation on the machine is running. Their failures concern an earlier process. */
async function waitForWork(client: DaemonClient, name: string) {
  const byStatus = await client.get<Record<string, Operation[] | undefined>>('/1.0/operations', {
    recursion: '1',
  });
  const at = new RegExp(`/${name}(\\?|$)`);
  const busy = [...(byStatus.running ?? []), ...(byStatus.pending ?? [])].filter((operation) =>
    Object.values(operation.resources ?? {}).some((names) => names?.some((one) => at.test(one))),
  );
  await Promise.all(busy.map(({ id }) => client.wait(id).catch(() => {})));
}
