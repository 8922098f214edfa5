// Fetches an image from a host that the operator allows. The address is resolved once and the connection is pinned to
// it, so that a name can't lead into this network after it was checked. Redirects are not followed.

import { lookup } from 'node:dns/promises';
import { request } from 'node:https';
import { isIP } from 'node:net';
import { parseAddressList } from '#lib/address-list.ts';

/** Networks that are not the internet: this computer, private and link-local networks, and what maps to them. */
const isReserved = parseAddressList([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3'],
  // An IPv4 address that is written as IPv6 is checked as IPv4, so that ::ffff:0:0/96 must not be listed.
  ...['::/96', '64:ff9b::/16', '100::/64', '2001::/23', '2001:db8::/32', '2002::/16'],
  ...['fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
]);

/** True for an address that an image may be fetched from. */
export const isPublicAddress = (address: string) =>
  isIP(address) !== 0 && isReserved?.(address) === false;

export interface FetchOptions {
  /** Addresses of a host. Default: the system's resolver. */
  readonly resolve?: (host: string) => Promise<string[]>;
  readonly isPublic?: (address: string) => boolean;
  /** Certificates to trust instead of the well-known ones. */
  readonly ca?: string;
}

export const maxImageBytes = 20 * 1024 * 1024;
const timeoutMs = 10_000;
const imageType = /^image\/(?:png|jpeg|gif|webp)(?=;|$)/;

/** Returns a data URL. Throws an Error whose message says why the image can't be used; it names no address. */
export async function fetchImage(
  url: URL,
  { resolve = resolveHost, isPublic = isPublicAddress, ca }: FetchOptions,
  client: AbortSignal,
): Promise<string> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const signal = AbortSignal.any([client, AbortSignal.timeout(timeoutMs)]);
  const addresses = isIP(host) === 0 ? await resolve(host) : [host];
  const [address] = addresses;
  if (address === undefined) throw new Error('the host has no address');
  if (!addresses.every(isPublic)) throw new Error('the host is in a private network');
  return new Promise((settle, reject) => {
    const sent = request(url, {
      signal,
      ca,
      agent: false,
      lookup: (_host, options, done) => {
        const family = isIP(address);
        if (options.all) done(null, [{ address, family }]);
        else done(null, address, family);
      },
    });
    sent.once('error', () => reject(new Error('the host did not send it')));
    sent.once('response', (response) => {
      const type = imageType.exec(response.headers['content-type'] ?? '')?.[0];
      const chunks: Buffer[] = [];
      let bytes = 0;
      const fail = (why: string) => {
        reject(new Error(why));
        sent.destroy();
      };
      if (response.statusCode !== 200) return fail(`the host responded ${response.statusCode}`);
      if (type === undefined) return fail('it is not a PNG, JPEG, GIF or WebP image');
      response.once('error', () => fail('the host did not send it'));
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxImageBytes) fail(`it is over ${maxImageBytes} bytes`);
        else chunks.push(chunk);
      });
      response.once('end', () =>
        settle(`data:${type};base64,${Buffer.concat(chunks).toString('base64')}`),
      );
    });
    sent.end();
  });
}

async function resolveHost(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}
