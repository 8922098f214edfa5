// Fetches an image from a host that the operator allows. The address is resolved once and the connection is pinned to
// it, so that a name can't lead into this network after it was checked. Redirects are not followed.

import { lookup } from 'node:dns/promises';
import { request } from 'node:https';
import { isIP } from 'node:net';
import { isPublicAddress, toHost } from '#lib/public-address.ts';

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
  const host = toHost(url);
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
