// Maps a machine to the daemon's instance: its specification becomes a create request with our marks. Pure.

import { isAbsolute } from 'node:path';
import type { MachineSpec } from '#cloud/drivers/driver.ts';
import { DriverError } from '#cloud/drivers/driver.ts';
import { type NicPlace, toNics } from '#cloud/drivers/incus/network/nics.ts';
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

/** Set at the end of a launch. A machine without it is incomplete, whatever state the daemon reports. */
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

/** Returns undefined if the instance is not ours. */
export function findId(instance: DaemonInstance | undefined, owner: string): string | undefined {
  if (instance?.config[ownerKey] !== owner) return undefined;
  return instance.config[idKey];
}

export function addressOf(instance: DaemonInstance): string | null {
  return instance.config[addressKey] ?? null;
}

/** The address on the account's private network; null if the machine is on none. */
export function privateAddressOf({ devices }: DaemonInstance): string | null {
  return devices.eth1?.['ipv4.address'] ?? null;
}

export function isSettled(instance: DaemonInstance): boolean {
  return instance.config[settledKey] === 'true';
}

export interface InstanceInput extends NicPlace {
  readonly owner: string;
  readonly pool: string;
  readonly profiles: readonly string[];
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
      // The machine's user has the same id on the host, so that shared storage sees one owner everywhere.
      ...(mapped ? { 'raw.idmap': 'both 1000 1000' } : {}),
      ...place.seed.config,
    },
    devices: {
      root: { type: 'disk', path: '/', pool: place.pool, size: `${spec.storageGib}GiB` },
      ...toNics(spec.id, place),
      ...place.filesystems.devices,
      ...Object.fromEntries(spec.gpus.map((gpu, index) => [`gpu${index}`, toGpu(gpu, index)])),
    } as Readonly<Record<string, Device>>,
  };
}

const nvidia = { 'nvidia.runtime': 'true', 'nvidia.driver.capabilities': 'compute,utility' };

const isNvidia = (gpu: string) => !isAbsolute(gpu);

/** `address` is one from inventory.ts: a PCI address, one followed by a MIG slice, or a device node. */
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
