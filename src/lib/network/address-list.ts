// A list of IP addresses and networks, such as 10.0.0.0/8, that an address can be looked up in.

import { BlockList, isIP } from 'node:net';

/** Returns undefined if an entry is neither an address nor a network. */
export function parseAddressList(
  entries: readonly string[],
): ((address: string) => boolean) | undefined {
  const list = new BlockList();
  for (const entry of entries) {
    const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
    const family = familyOf(address);
    const maxBits = family === 'ipv4' ? 32 : 128;
    if (family === null || Number(bits ?? 0) > maxBits) return undefined;
    list.addSubnet(address, Number(bits ?? maxBits), family);
  }
  return (address) => {
    const family = familyOf(address);
    return family !== null && list.check(address, family);
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' | null {
  const version = isIP(address);
  return version === 0 ? null : version === 4 ? 'ipv4' : 'ipv6';
}
