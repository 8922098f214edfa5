// Whom a machine's rules let in to one tcp port, for connections that end in this process and so never pass
// the machine's packet filter.

import { BlockList, isIPv6 } from 'node:net';
import type { InboundRule } from '#cloud/drivers/driver.ts';

export type SourceFilter = (address: string | undefined) => boolean;

export function createSourceFilter(rules: readonly InboundRule[], port: number): SourceFilter {
  // Despite its name a list of addresses; it knows an IPv4 address that is written as IPv6 too.
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
