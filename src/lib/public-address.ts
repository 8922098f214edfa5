// Which addresses are on the internet, and which lead to this computer or into a private network.

import { isIP } from 'node:net';
import { parseAddressList } from './address-list.ts';

/** Networks that are not the internet: this computer, private and link-local networks, and what maps to them. */
const isReserved = parseAddressList([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3'],
  // An IPv4 address that is written as IPv6 is checked as IPv4, so that ::ffff:0:0/96 must not be listed.
  ...['::/96', '64:ff9b::/16', '100::/64', '2001::/23', '2001:db8::/32', '2002::/16'],
  ...['fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
]);

export const isPublicAddress = (address: string): boolean =>
  isIP(address) !== 0 && isReserved?.(address) === false;

/** The host of a URL as a resolver takes it: IPv6 without brackets. */
export const toHost = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');
