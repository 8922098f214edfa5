// Decides which source addresses a machine's rules allow on one TCP port, for connections that end in this
// process and so bypass the machine's packet filter.

import { BlockList, isIPv6 } from 'node:net';
import type { InboundRule } from '#cloud/drivers/driver.ts';

export type SourceFilter = (address: string | undefined) => boolean;

export function createSourceFilter(rules: readonly InboundRule[], port: number): SourceFilter {
  // Despite its name it holds allowed addresses here. It also matches IPv4-mapped IPv6 addresses.
  const allowed = new BlockList();
  for (const { protocol, portRange, sourceNetwork } of rules) {
    const [low, high] = portRange ?? [1, 65_535];
    if ((protocol !== 'tcp' && protocol !== 'all') || port < low || port > high) continue;
    const [network, bits] = sourceNetwork.split('/');
    allowed.addSubnet(network!, Number(bits ?? 32));
  }
  return (address) =>
    address !== undefined && allowed.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
