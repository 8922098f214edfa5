// The driver for an Incus or LXD endpoint: one host or a cluster, over its socket or HTTPS. Containers and virtual
// machines keep running when this process ends, and are found again by their marks.

import {
  type Driver,
  DriverError,
  type DriverReport,
  type MachineState,
} from '#cloud/drivers/driver.ts';
import { engineOf } from '#cloud/drivers/incus/daemon/flavor.ts';
import { importImage } from '#cloud/drivers/incus/images/image-import.ts';
import { listImages } from '#cloud/drivers/incus/images/images.ts';
import { runInside } from '#cloud/drivers/incus/machine/command.ts';
import { connectInside } from '#cloud/drivers/incus/machine/connection.ts';
import {
  addressOf,
  findId,
  instanceName,
  instancePath,
  isSettled,
  privateAddressOf,
} from '#cloud/drivers/incus/machine/instance.ts';
import {
  launchMachine,
  removeMachine,
  restartMachine,
} from '#cloud/drivers/incus/machine/life-cycle.ts';
import { refuseKeys } from '#cloud/drivers/incus/machine/refused-keys.ts';
import { measureInstance } from '#cloud/drivers/incus/machine/stats.ts';
import { openInstanceTerminal } from '#cloud/drivers/incus/machine/terminal.ts';
import type { AddressPlan } from '#cloud/drivers/incus/network/addresses.ts';
import {
  findWaitReason,
  sweepPrivateNetworks,
} from '#cloud/drivers/incus/network/private-networks.ts';
import { prepareWeights, sweepWeights } from '#cloud/drivers/incus/storage/weight-volumes.ts';
import { type IncusContext, type IncusOptions, openContext } from './context.ts';
import { takeInventory } from './inventory.ts';

export type IncusDriver = Driver &
  Required<Pick<Driver, 'attachTerminal' | 'watch' | 'images'>> & {
    /** E.g. `lxd 5.0.2`. */
    readonly engine: string;
    /** The range that a launch's address must be in. */
    addressRange(): AddressPlan;
  };

const maxBootLogBytes = 256 * 1024;

export async function createIncusDriver(options: IncusOptions): Promise<IncusDriver> {
  const context = await openContext(options);
  const { client, info, instances, filesystems, locks, sshProbe } = context;
  return {
    name: 'incus',
    engine: engineOf(info),
    addressRange: () => context.plan,
    describe: () => describe(context),
    inspect: (id) => inspect(context, id),
    prepare: async (spec) => (await findWaitReason(context, spec)) ?? prepareWeights(context, spec),
    launch: (spec) => locks.run(spec.id, () => launchMachine(context, spec)),
    restart: (spec) =>
      locks.run(spec.id, async () => {
        sshProbe.forget(spec.id);
        await restartMachine(context, spec);
      }),
    terminate: (id) =>
      locks.run(id, async () => {
        sshProbe.forget(id);
        await removeMachine(context, id);
      }),
    async list() {
      return (await instances.list()).map((instance) => findId(instance, context.owner)!);
    },
    async setFirewall(spec) {
      const instance = await instances.find(spec.id);
      if (instance) await context.firewall.set(spec.id, addressOf(instance), spec);
    },
    refuseKeys: (spec) => locks.run(spec.id, () => refuseKeys(context, spec)),
    createFilesystem: filesystems.create,
    deleteFilesystem: filesystems.remove,
    filesystemUsage: filesystems.usage,
    sweepWeights: (sources) => sweepWeights(context, sources),
    sweepNetworks: () => sweepPrivateNetworks(context),
    async bootLog(id) {
      if (!(await instances.find(id))) return '';
      const path = `${instancePath(instanceName(id))}/console`;
      return (await client.bytes(path, maxBootLogBytes))?.toString('utf8') ?? '';
    },
    async stats(id) {
      const instance = await instances.find(id);
      return instance && measureInstance(client, instance);
    },
    watch: instances.watch,
    images: () => listImages(client),
    importImage: (name, source) => importImage(client, info, name, source),
    async attachTerminal(id, size) {
      const instance = await instances.find(id);
      if (instance?.status !== 'Running') return undefined;
      // `su` starts a login session: home, groups and shell are those set in the machine.
      const command = ['su', '-', 'ubuntu'];
      return openInstanceTerminal(client, instancePath(instance.name), { ...size, command });
    },
    connect: async (id, port) => connectInside(client, await findRunning(context, id), port),
    run: async (id, command) => runInside(client, await findRunning(context, id), command),
    async close() {
      instances.close();
      await client.close();
    },
  };
}

/** Returns the path of the machine. */
async function findRunning({ instances }: IncusContext, id: string): Promise<string> {
  const instance = await instances.find(id);
  if (instance?.status !== 'Running')
    throw new DriverError('unavailable', 'The machine does not run.');
  return instancePath(instance.name);
}

async function describe(context: IncusContext): Promise<DriverReport> {
  const { client, info } = context;
  const inventory = await takeInventory(client, info, context);
  client.alsoAt(inventory.urls ?? []);
  const identity = info.environment?.certificate_fingerprint;
  const kinds = context.canVirtualise
    ? 'Unprivileged containers and virtual machines'
    : 'Unprivileged containers';
  return {
    isolated: true,
    isolation: `${kinds} of ${engineOf(info)}; CPU, memory and, where the pool can, disk limited.`,
    network: [
      context.firewall.enforced
        ? 'Own addresses, inbound by firewall rules and from the same account.'
        : 'Own addresses; firewall rules are not enforced.',
      ...(context.ovnUplink === null ? [] : ['A private network for each account.']),
    ].join(' '),
    ...(identity === undefined ? {} : { identity }),
    ...inventory,
  };
}

async function inspect(context: IncusContext, id: string): Promise<MachineState> {
  // Asked before as well: the launch may end while the daemon answers with what was before.
  const wasHeld = context.locks.isHeld(id);
  const instance = await context.instances.find(id);
  if (wasHeld || context.locks.isHeld(id)) {
    return { state: 'starting', ip: instance ? addressOf(instance) : null };
  }
  if (!instance) {
    context.sshProbe.forget(id);
    return { state: 'absent' };
  }
  const ip = addressOf(instance);
  if (instance.status === 'Error') {
    throw new DriverError('unavailable', `Node ${instance.location} does not respond.`);
  }
  if (!isSettled(instance) || ip === null) {
    return { state: 'stopped', reason: 'Its launch was never finished.' };
  }
  if (instance.status === 'Frozen') return { state: 'stopped', reason: 'It is paused.' };
  if (instance.status !== 'Running') {
    return { state: 'stopped', reason: 'It was shut down, or its host was restarted.' };
  }
  if (!(await context.sshProbe.responds(id, instance, ip))) return { state: 'starting', ip };
  return { state: 'running', ip, privateIp: privateAddressOf(instance) ?? ip, sshPort: 22 };
}
