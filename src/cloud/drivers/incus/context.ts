// State shared by all machines of one endpoint: the connection, the network plan and the operator's settings.

import { DriverError } from '#cloud/drivers/driver.ts';
import { createDaemonClient, type DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import type { Endpoint } from '#cloud/drivers/incus/daemon/endpoint.ts';
import { type Flavor, flavorOf, type ServerInfo } from '#cloud/drivers/incus/daemon/flavor.ts';
import { smallImage } from '#cloud/drivers/incus/images/image-recipe.ts';
import type { ImageNames } from '#cloud/drivers/incus/images/images.ts';
import {
  createInstanceCache,
  type InstanceCache,
} from '#cloud/drivers/incus/machine/instance-cache.ts';
import { createSshProbe, type SshProbe } from '#cloud/drivers/incus/machine/reachability.ts';
import {
  type AddressPlan,
  type GivenAddresses,
  planAddresses,
} from '#cloud/drivers/incus/network/addresses.ts';
import {
  type NetworkAcl,
  openNetworkAcl,
  unenforced,
} from '#cloud/drivers/incus/network/firewall.ts';
import { checkUplink } from '#cloud/drivers/incus/network/ovn-uplink.ts';
import {
  type FilesystemStore,
  type HostPaths,
  inHostPaths,
  inVolumes,
} from '#cloud/drivers/incus/storage/volumes.ts';
import type { WeightCopy } from '#cloud/drivers/incus/storage/weight-copy.ts';
import { createKeyedMutex, type KeyedMutex } from '#lib/async/keyed-mutex.ts';
import type { GivenGpus } from './inventory.ts';

export interface IncusOptions {
  readonly endpoint: Endpoint;
  /** Identifies this installation. Machines with another owner's mark are ignored. */
  readonly owner: string;
  /** The host's name for people. Default: `the host`. */
  readonly hostName?: string;
  /** Identifies this server among those of the installation. Default: the owner. */
  readonly serverId?: string;
  /** Cluster member, or a group as `@name`; null for any. */
  readonly target?: string | null;
  readonly project?: string;
  readonly pool?: string;
  readonly network?: string;
  /** Physical network on which accounts get an OVN network each. Default: none, accounts get no such network. */
  readonly ovnUplink?: string;
  readonly profiles?: readonly string[];
  /** Required if the daemon does not manage the network. */
  readonly addresses?: GivenAddresses;
  /** Folders that hold filesystems; undefined stores them as volumes of the pool. */
  readonly hostPaths?: HostPaths;
  /** `off` leaves inbound traffic to the operator's own rules. Default: `auto`. */
  readonly firewall?: 'auto' | 'off';
  readonly defaultImage?: string;
  readonly imageNames?: Readonly<Record<string, string>>;
  readonly gpus?: GivenGpus;
  /** Interval at which all machines are listed even if no event arrives. Default: 30 s. */
  readonly resyncMs?: number;
  /** How long a machine may take to shut down before it is powered off. Default: 20 s. */
  readonly gracefulSeconds?: number;
  readonly log?: (message: string) => void;
}

export const defaults = { project: 'default', pool: 'default' } as const;

export interface IncusContext {
  readonly client: DaemonClient;
  readonly info: ServerInfo;
  readonly flavor: Flavor;
  readonly instances: InstanceCache;
  readonly sshProbe: SshProbe;
  /** One lock per machine id. */
  readonly locks: KeyedMutex;
  readonly plan: AddressPlan;
  readonly firewall: NetworkAcl;
  /** Null if accounts have no OVN networks. */
  readonly ovnUplink: string | null;
  /** Names of the accounts' networks that no machine used when they were last looked at. */
  readonly unusedNetworks: Set<string>;
  readonly filesystems: FilesystemStore;
  readonly images: ImageNames;
  readonly gpus: GivenGpus;
  readonly canVirtualise: boolean;
  readonly owner: string;
  readonly serverId: string;
  readonly hostName: string;
  /** Copies of weights that are being made or have failed, by the name of their volume. */
  readonly copies: Map<string, WeightCopy>;
  readonly pool: string;
  readonly profiles: readonly string[];
  /** Cluster member or group for specs without a node; null for any. */
  readonly target: string | null;
  readonly gracefulSeconds: number;
  /** Addresses chosen so far, by machine id and network. The daemon may not list them yet. */
  readonly reserved: Map<string, string>;
}

export async function openContext(options: IncusOptions): Promise<IncusContext> {
  const { owner, pool = defaults.pool } = options;
  const client = createDaemonClient(options.endpoint, options.project ?? defaults.project);
  const { info, plan, firewall } = await openNetwork(client, options).catch(async (error) => {
    await client.close();
    throw error;
  });
  const log = options.log ?? (() => {});
  return {
    client,
    info,
    flavor: flavorOf(info),
    instances: createInstanceCache(client, { owner, resyncMs: options.resyncMs ?? 30_000, log }),
    sshProbe: createSshProbe(client),
    locks: createKeyedMutex(),
    plan,
    firewall,
    ovnUplink: options.ovnUplink ?? null,
    unusedNetworks: new Set(),
    filesystems: options.hostPaths
      ? inHostPaths(options.hostPaths)
      : inVolumes(client, pool, owner),
    images: { fallback: options.defaultImage ?? smallImage, names: options.imageNames ?? {} },
    gpus: options.gpus ?? {},
    canVirtualise: info.environment?.driver?.includes('qemu') ?? false,
    owner,
    serverId: options.serverId ?? owner,
    hostName: options.hostName ?? 'the host',
    copies: new Map(),
    pool,
    profiles: options.profiles ?? ['default'],
    target: options.target ?? null,
    gracefulSeconds: options.gracefulSeconds ?? 20,
    reserved: new Map(),
  };
}

async function openNetwork(client: DaemonClient, options: IncusOptions) {
  const info = await client.get<ServerInfo>('/1.0');
  if (info.auth !== 'trusted') {
    const message = `${options.endpoint.url} does not trust this server's certificate yet.`;
    throw new DriverError('unavailable', message);
  }
  const network = options.network ?? flavorOf(info).network;
  const plan = await planAddresses(client, network, options.addresses);
  if (options.ovnUplink !== undefined) await checkUplink(client, flavorOf(info), options.ovnUplink);
  const firewall =
    options.firewall === 'off' ? unenforced : await openNetworkAcl(client, plan, options.owner);
  return { info, plan, firewall };
}
