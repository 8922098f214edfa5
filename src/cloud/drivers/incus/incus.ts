// The driver for an Incus or LXD endpoint: one host or a cluster, over its socket or over HTTPS. Containers
// and virtual machines live on there whatever becomes of us, and are found again by our marks.

import { type Driver, DriverError, type MachineState } from '#cloud/drivers/driver.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';
import { type AddressPlan, type GivenAddresses, planAddresses } from './addresses.ts';
import { createDaemonClient } from './client.ts';
import type { Endpoint } from './endpoint.ts';
import { openNetworkAcl, unenforced } from './firewall.ts';
import { engineOf, flavorOf, type ServerInfo } from './flavor.ts';
import { importImage } from './image-import.ts';
import { smallImage } from './image-recipe.ts';
import { listImages } from './images.ts';
import {
  addressOf,
  type DaemonInstance,
  findId,
  instanceName,
  instancePath,
  isSettled,
} from './instance.ts';
import { createInstanceCache } from './instance-cache.ts';
import { type GivenGpus, takeInventory } from './inventory.ts';
import { type IncusContext, launchMachine, removeMachine, restartMachine } from './life-cycle.ts';
import { greet, listensInside } from './reachability.ts';
import { openInstanceTerminal } from './terminal.ts';
import { type HostPaths, inHostPaths, inVolumes } from './volumes.ts';

export interface IncusOptions {
  readonly endpoint: Endpoint;
  /** Of this installation: machines with another one's mark are not ours. */
  readonly owner: string;
  /** A cluster's member, or a group as `@name`; null for any. */
  readonly target?: string | null;
  readonly project?: string;
  readonly pool?: string;
  readonly network?: string;
  readonly profiles?: readonly string[];
  /** Needed where the network is a bridge of the operator's. */
  readonly addresses?: GivenAddresses;
  /** FilesystemStore are folders there; volumes of the pool when left out. */
  readonly hostPaths?: HostPaths;
  /** `off` leaves inbound traffic to the operator's own rules. */
  readonly firewall?: 'auto' | 'off';
  readonly defaultImage?: string;
  readonly imageNames?: Readonly<Record<string, string>>;
  readonly gpus?: GivenGpus;
  readonly resyncMs?: number;
  /** How long a machine may take to shut down before it is switched off. */
  readonly gracefulSeconds?: number;
  readonly log?: (message: string) => void;
}

export type IncusDriver = Driver &
  Required<Pick<Driver, 'attachTerminal' | 'watch' | 'images'>> & {
    /** E.g. `lxd 5.0.2`. */
    readonly engine: string;
    /** What a launch's address must lie in. */
    addressRange(): AddressPlan;
  };

export const defaults = { project: 'default', pool: 'default' } as const;

const bootLogBytes = 256 * 1024;
const patienceMs = 5_000;

export async function createIncusDriver(options: IncusOptions): Promise<IncusDriver> {
  const { owner, target = null, pool = defaults.pool } = options;
  const log = options.log ?? (() => {});
  const client = createDaemonClient(options.endpoint, options.project ?? defaults.project);
  const { info, plan, firewall } = await prepare().catch(async (error) => {
    await client.close();
    throw error;
  });
  const instances = createInstanceCache(client, {
    owner,
    resyncMs: options.resyncMs ?? 30_000,
    log,
  });
  const locks = createKeyedMutex();
  const context: IncusContext = {
    client,
    flavor: flavorOf(info),
    instances,
    plan,
    firewall,
    filesystems: options.hostPaths
      ? inHostPaths(options.hostPaths)
      : inVolumes(client, pool, owner),
    images: { fallback: options.defaultImage ?? smallImage, names: options.imageNames ?? {} },
    canVirtualise: info.environment?.driver?.includes('qemu') ?? false,
    owner,
    pool,
    profiles: options.profiles ?? ['default'],
    target,
    gracefulSeconds: options.gracefulSeconds ?? 20,
    reserved: new Map(),
  };
  /** When the machine whose ssh answered was started, by id. */
  const proven = new Map<string, string>();
  const proving = new Map<string, Promise<boolean>>();

  async function prepare() {
    const info = await client.get<ServerInfo>('/1.0');
    if (info.auth !== 'trusted') {
      throw new DriverError('unavailable', `${options.endpoint.url} does not trust us yet.`);
    }
    const network = options.network ?? flavorOf(info).network;
    const plan = await planAddresses(client, network, options.addresses);
    const firewall =
      options.firewall === 'off' ? unenforced : await openNetworkAcl(client, plan, owner);
    return { info, plan, firewall };
  }

  async function answersSsh(id: string, instance: DaemonInstance): Promise<boolean> {
    if (proven.get(id) === instance.last_used_at) return true;
    let asking = proving.get(id);
    if (!asking) {
      asking = ask(instance).finally(() => proving.delete(id));
      proving.set(id, asking);
    }
    const answers = await asking;
    if (answers) proven.set(id, instance.last_used_at);
    return answers;
  }

  async function ask(instance: DaemonInstance): Promise<boolean> {
    const greeting = await greet(addressOf(instance)!);
    if (greeting !== 'silent') return greeting === 'answers';
    // Either clock may be wrong: only a machine that was started just now is still expected to come up.
    const sinceStartMs = Math.abs(Date.now() - Date.parse(instance.last_used_at));
    if (sinceStartMs < patienceMs) return false;
    return listensInside(client, instancePath(instance.name)).catch(() => false);
  }

  async function inspect(id: string): Promise<MachineState> {
    const instance = await instances.find(id);
    if (locks.isHeld(id)) return { state: 'starting', ip: instance ? addressOf(instance) : null };
    if (!instance) {
      proven.delete(id);
      return { state: 'absent' };
    }
    const ip = addressOf(instance);
    if (instance.status === 'Error') {
      throw new DriverError('unavailable', `Node ${instance.location} does not answer.`);
    }
    if (!isSettled(instance) || ip === null) {
      return { state: 'stopped', reason: 'It was never made to its end.' };
    }
    if (instance.status === 'Frozen') return { state: 'stopped', reason: 'It is paused.' };
    if (instance.status !== 'Running') {
      return { state: 'stopped', reason: 'It was shut down, or its host was restarted.' };
    }
    if (!(await answersSsh(id, instance))) return { state: 'starting', ip };
    return { state: 'running', ip, privateIp: ip, sshPort: 22 };
  }

  return {
    name: 'incus',
    engine: engineOf(info),
    addressRange: () => plan,
    inspect,

    async describe() {
      const inventory = await takeInventory(client, info, {
        pool,
        target,
        gpus: options.gpus ?? {},
      });
      client.alsoAt(inventory.urls ?? []);
      const identity = info.environment?.certificate_fingerprint;
      const kinds = context.canVirtualise
        ? 'Unprivileged containers and virtual machines'
        : 'Unprivileged containers';
      return {
        isolated: true,
        isolation: `${kinds} of ${engineOf(info)}; CPU, memory and, where the pool can, disk limited.`,
        network: firewall.enforced
          ? 'Own addresses, inbound by firewall rules.'
          : 'Own addresses; firewall rules are not enforced.',
        ...(identity === undefined ? {} : { identity }),
        ...inventory,
      };
    },

    launch: (spec) => locks.run(spec.id, () => launchMachine(context, spec)),
    restart: (spec) =>
      locks.run(spec.id, async () => {
        proven.delete(spec.id);
        await restartMachine(context, spec);
      }),
    terminate: (id) =>
      locks.run(id, async () => {
        proven.delete(id);
        await removeMachine(context, id);
      }),

    async list() {
      return (await instances.list()).map((instance) => findId(instance, owner)!);
    },

    async setFirewall(id, rules) {
      const instance = await instances.find(id);
      if (instance) await firewall.set(id, addressOf(instance), rules);
    },

    createFilesystem: context.filesystems.create,
    deleteFilesystem: context.filesystems.remove,
    filesystemUsage: context.filesystems.usage,

    async bootLog(id) {
      if (!(await instances.find(id))) return '';
      const path = `${instancePath(instanceName(id))}/console`;
      return (await client.bytes(path, bootLogBytes))?.toString('utf8') ?? '';
    },

    watch: instances.watch,
    images: () => listImages(client),
    importImage: (name, source) => importImage(client, info, name, source),

    async attachTerminal(id, size) {
      const instance = await instances.find(id);
      if (instance?.status !== 'Running') return undefined;
      return openInstanceTerminal(client, instancePath(instance.name), size);
    },

    async close() {
      instances.close();
      await client.close();
    },
  };
}
