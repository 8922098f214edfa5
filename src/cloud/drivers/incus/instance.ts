// What a machine is at the daemon: an instance with our marks, made from its specification. Pure.

import { isAbsolute } from 'node:path';
import type { MachineSpec } from '#cloud/drivers/driver.ts';
import { DriverError } from '#cloud/drivers/driver.ts';
import type { AddressPlan } from './addresses.ts';
import type { MachineSeed } from './seed.ts';

export interface DaemonInstance {
  readonly name: string;
  readonly status: string;
  readonly type: 'container' | 'virtual-machine';
  readonly location: string;
  readonly last_used_at: string;
  readonly config: Readonly<Record<string, string>>;
  readonly devices: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export type Device = Readonly<Record<string, string>>;

/** Written when a launch came to its end. Without it the machine is half-made, whatever it looks like. */
export const settledKey = 'user.millrace.settled';
const idKey = 'user.millrace.id';
const ownerKey = 'user.millrace.owner';
const addressKey = 'user.millrace.address';

export function instanceName(id: string): string {
  return `millrace-${id.slice(0, 12)}`;
}

export function instancePath(name: string): string {
  return `/1.0/instances/${encodeURIComponent(name)}`;
}

/** Undefined for what is not ours. */
export function findId(instance: DaemonInstance | undefined, owner: string): string | undefined {
  if (instance?.config[ownerKey] !== owner) return undefined;
  return instance.config[idKey];
}

export function addressOf(instance: DaemonInstance): string | null {
  return instance.config[addressKey] ?? null;
}

export function isSettled(instance: DaemonInstance): boolean {
  return instance.config[settledKey] === 'true';
}

export interface InstanceInput {
  readonly owner: string;
  readonly pool: string;
  readonly profiles: readonly string[];
  readonly address: string;
  readonly plan: AddressPlan;
  readonly seed: MachineSeed;
  readonly image: { readonly fingerprint: string; readonly type: DaemonInstance['type'] };
  readonly filesystems: { readonly devices: Record<string, Device>; readonly mapsUser: boolean };
}

/** The body of a create request. */
export function toCreateRequest(spec: MachineSpec, place: InstanceInput) {
  const isVirtual = place.image.type === 'virtual-machine';
  const mapped = place.filesystems.mapsUser && !isVirtual;
  return {
    name: instanceName(spec.id),
    type: place.image.type,
    source: { type: 'image', fingerprint: place.image.fingerprint },
    profiles: place.profiles,
    config: {
      [idKey]: spec.id,
      [ownerKey]: place.owner,
      [addressKey]: place.address,
      'limits.cpu': `${spec.vcpus}`,
      'limits.memory': `${spec.memoryGib}GiB`,
      ...(spec.gpus.length > 0 && !isVirtual && spec.gpus.some(isNvidia) ? nvidia : {}),
      // The machine's user is the same number on the host: shared storage sees one owner everywhere.
      ...(mapped ? { 'raw.idmap': 'both 1000 1000' } : {}),
      ...place.seed.config,
    },
    devices: {
      root: { type: 'disk', path: '/', pool: place.pool, size: `${spec.storageGib}GiB` },
      eth0: toNic(place),
      ...place.filesystems.devices,
      ...Object.fromEntries(spec.gpus.map((gpu, index) => [`gpu${index}`, toGpu(gpu, index)])),
    } as Readonly<Record<string, Device>>,
  };
}

/** Tenants share the bridge: none reaches another past the host, or takes another's address. */
const guarded = {
  'security.port_isolation': 'true',
  'security.mac_filtering': 'true',
  'security.ipv4_filtering': 'true',
};

function toNic({ plan, address }: InstanceInput): Device {
  const common = { type: 'nic', name: 'eth0' };
  // The daemon's own DHCP hands out what is reserved here; a foreign bridge only carries the packets.
  return plan.managed
    ? { ...common, ...guarded, network: plan.network, 'ipv4.address': address }
    : { ...common, nictype: 'bridged', parent: plan.network };
}

const nvidia = { 'nvidia.runtime': 'true', 'nvidia.driver.capabilities': 'compute,utility' };

const isNvidia = (gpu: string) => !isAbsolute(gpu);

/** Addresses are those of inventory.ts: a PCI address, one with a MIG slice behind it, or a device node. */
export function toGpu(address: string, index: number): Device {
  if (isAbsolute(address)) {
    return { type: 'unix-char', source: address, path: `/dev/nvidia${index}`, mode: '0666' };
  }
  const [, pci, slice] =
    /^([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?:\/(.+))?$/i.exec(address) ?? [];
  if (pci === undefined) throw new DriverError('impossible', `"${address}" is no GPU's address.`);
  return slice === undefined
    ? { type: 'gpu', gputype: 'physical', pci }
    : { type: 'gpu', gputype: 'mig', pci, 'mig.uuid': slice };
}
