// The addresses for machines on an endpoint's network. One is chosen before the machine boots, and kept.

import { isIPv4 } from 'node:net';
import { DriverError } from '#cloud/drivers/driver.ts';
import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';

export interface AddressPlan {
  readonly network: string;
  /**
   * Whether the daemon manages the network and hands out reserved addresses; otherwise it is the operator's
   * bridge.
   */
  readonly managed: boolean;
  /** CIDR notation. */
  readonly subnet: string;
  readonly gateway: string;
  /** First and last usable address, inclusive; the gateway may lie between them. */
  readonly first: string;
  readonly last: string;
}

/** Operator's settings for a bridge that the daemon does not manage, or to use only a part of a subnet. */
export interface GivenAddresses {
  readonly subnet: string;
  readonly gateway?: string;
  readonly first?: string;
  readonly last?: string;
}

interface Network {
  readonly managed: boolean;
  readonly config: Readonly<Record<string, string>>;
}

export async function planAddresses(
  client: DaemonClient,
  network: string,
  given?: GivenAddresses,
): Promise<AddressPlan> {
  const found = await client.find<Network>(`/1.0/networks/${encodeURIComponent(network)}`);
  if (!found) throw new DriverError('unavailable', `The endpoint has no network "${network}".`);
  const own = found.config['ipv4.address'];
  const usable = found.managed && own?.includes('/') ? own : undefined;
  const subnet = given?.subnet ?? usable;
  if (subnet === undefined) {
    throw new DriverError(
      'unavailable',
      `Network "${network}" has no IPv4 subnet of its own: say which addresses machines may have.`,
    );
  }
  const { low, high } = parseSubnet(subnet);
  return {
    network,
    managed: found.managed,
    subnet,
    gateway: given?.gateway ?? usable?.split('/')[0] ?? toAddress(low + 1),
    first: given?.first ?? toAddress(low + 1),
    last: given?.last ?? toAddress(high - 1),
  };
}

export function isUsable(plan: AddressPlan, address: string): boolean {
  if (!isIPv4(address) || address === plan.gateway) return false;
  const number = toNumber(address);
  return number >= toNumber(plan.first) && number <= toNumber(plan.last);
}

/** The id determines where the search begins, so that a retry finds the same address. */
export function chooseNetworkAddress(
  plan: AddressPlan,
  id: string,
  taken: ReadonlySet<string>,
): string {
  const first = toNumber(plan.first);
  const count = toNumber(plan.last) - first + 1;
  const start = Number.parseInt(id.slice(0, 8), 16) % count;
  for (let step = 0; step < count; step += 1) {
    const address = toAddress(first + ((start + step) % count));
    if (isUsable(plan, address) && !taken.has(address)) return address;
  }
  throw new DriverError('unavailable', `Every address of ${plan.subnet} is taken.`);
}

/** The addresses for machines without some of them and the gateway, as ranges. */
export function rangesWithout(plan: AddressPlan, addresses: readonly string[]): string[] {
  const holes = [...addresses, plan.gateway].map(toNumber).sort((a, b) => a - b);
  const ranges: string[] = [];
  let from = toNumber(plan.first);
  for (const hole of [...holes, toNumber(plan.last) + 1]) {
    if (hole > from) ranges.push(`${toAddress(from)}-${toAddress(hole - 1)}`);
    from = Math.max(from, hole + 1);
  }
  return ranges;
}

/** The lower and the upper half of the subnet. */
export function toHalves(plan: AddressPlan): [string, string] {
  const { low, high } = parseSubnet(plan.subnet);
  const prefix = prefixOf(plan) + 1;
  return [`${toAddress(low)}/${prefix}`, `${toAddress((low + high + 1) / 2)}/${prefix}`];
}

export function prefixOf(plan: AddressPlan): number {
  return Number(plan.subnet.split('/')[1]);
}

function parseSubnet(subnet: string): { low: number; high: number } {
  const [address = '', prefix = ''] = subnet.split('/');
  const length = Number(prefix);
  if (!isIPv4(address) || !(length >= 8 && length <= 30)) {
    throw new DriverError('impossible', `"${subnet}" is not an IPv4 subnet of a usable size.`);
  }
  const size = 2 ** (32 - length);
  const low = Math.floor(toNumber(address) / size) * size;
  return { low, high: low + size - 1 };
}

function toNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function toAddress(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
}
