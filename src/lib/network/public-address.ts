// Which addresses are on the internet, and which lead to this computer or into a private network;
// and connections to the former alone.

import type { LookupAddress, LookupOptions } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
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

export type IsPublic = (address: string) => boolean;

export const isPublicAddress: IsPublic = (address) =>
  isIP(address) !== 0 && isReserved?.(address) === false;

/** The host of a URL as a resolver takes it: IPv6 without brackets. */
export const toHost = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

/** Returns all addresses of a host. */
export type ResolveHost = (host: string, options: LookupOptions) => Promise<LookupAddress[]>;

const resolveHost: ResolveHost = (host, options) => lookup(host, { ...options, all: true });

/** The code of a connection that was refused because its address is in a private network. */
export const privateCode = 'EPRIVATE';

/** True for an address in place of a name that is in a private network. Connections never look such addresses up. */
export const isPrivateLiteral = (url: URL, isPublic: IsPublic = isPublicAddress): boolean =>
  isIP(toHost(url)) !== 0 && !isPublic(toHost(url));

/** Looks names up for connections, so that what was checked is what is connected to. */
export const createPublicLookup =
  (isPublic: IsPublic = isPublicAddress, resolve: ResolveHost = resolveHost): LookupFunction =>
  (host, options, done) => {
    resolve(host, options).then(
      (found) => {
        const [first] = found;
        if (first === undefined || !found.every(({ address }) => isPublic(address)))
          done(
            Object.assign(new Error(`${host} is in a private network`), { code: privateCode }),
            '',
          );
        else if (options.all) done(null, found);
        else done(null, first.address, first.family);
      },
      (error) => done(error, ''),
    );
  };
