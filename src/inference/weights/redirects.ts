// Where a hub may redirect to for a file. A hub on the internet never leads into this network.

import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { isPublicAddress, toHost } from '#lib/public-address.ts';

export type IsPublic = (address: string) => boolean;

/** The code of a connection that was refused because its address is in a private network. */
export const privateCode = 'EPRIVATE';

/** Returns what is wrong with the redirect; null if it may be followed. */
export function findFault(next: URL, hub: URL): string | null {
  const isSecure = next.protocol === 'https:';
  // A hub without encryption is on the operator's own computers, and so may be the server of its files.
  const isOwn = next.protocol === hub.protocol && next.hostname === hub.hostname;
  return isSecure || isOwn ? null : 'it redirects to an address that is not https';
}

/** Whether the hub is in a private network, so that it may redirect there. */
export async function isPrivateHub(hub: URL, isPublic: IsPublic = isPublicAddress) {
  const found = await lookup(toHost(hub), { all: true }).catch(() => []);
  return found.some(({ address }) => !isPublic(address));
}

/** True for an address in place of a name that is in a private network. Such addresses are never looked up. */
export const isPrivateLiteral = (url: URL, isPublic: IsPublic = isPublicAddress) =>
  isIP(toHost(url)) !== 0 && !isPublic(toHost(url));

/** Looks names up for connections, so that what was checked is what is connected to. */
export const createPublicLookup =
  (isPublic: IsPublic = isPublicAddress): LookupFunction =>
  (host, options, done) => {
    lookup(host, { ...options, all: true }).then(
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
