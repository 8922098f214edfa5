// The network interfaces of a machine: the first is on the endpoint's bridge, the second on the private network of its
// account, if there is one.

import type { AddressPlan } from './addresses.ts';

export interface NicPlace {
  readonly plan: AddressPlan;
  readonly address: string;
  /** Null if the machine is on no private network. */
  readonly privateNic: PrivateNic | null;
}

/** A machine's place on the private network of its account. */
export interface PrivateNic {
  readonly plan: AddressPlan;
  readonly address: string;
}

type Nic = Readonly<Record<string, string>>;

/** Tenants share the bridge. No machine may reach another directly or take its address. */
const guarded = {
  'security.port_isolation': 'true',
  'security.mac_filtering': 'true',
  'security.ipv4_filtering': 'true',
};

export function toNics(id: string, place: NicPlace): Record<string, Nic> {
  const { privateNic } = place;
  if (privateNic === null) return { eth0: toNic(place) };
  const { plan, address } = privateNic;
  return {
    eth0: { ...toNic(place), hwaddr: toMac(id, 'eth0') },
    eth1: {
      type: 'nic',
      name: 'eth1',
      network: plan.network,
      'ipv4.address': address,
      hwaddr: toMac(id, 'eth1'),
    },
  };
}

/** Known before boot, so that cloud-init can tell the interfaces of a virtual machine apart. Locally administered. */
export const toMac = (id: string, nic: 'eth0' | 'eth1') =>
  [nic === 'eth0' ? '0a' : '0e', ...(id.slice(0, 10).match(/../g) ?? [])].join(':');

function toNic({ plan, address }: NicPlace): Nic {
  const common = { type: 'nic', name: 'eth0' };
  // The daemon's own DHCP server hands out the reserved address. A foreign bridge only carries the packets.
  return plan.managed
    ? { ...common, ...guarded, network: plan.network, 'ipv4.address': address }
    : { ...common, nictype: 'bridged', parent: plan.network };
}
