// Fetches an image from a host that the operator allows. A name can't lead into this network after it was checked.
// Redirects are not followed.

import { request } from 'node:https';
import {
  createPublicLookup,
  type IsPublic,
  isPrivateLiteral,
  privateCode,
  type ResolveHost,
} from '#lib/network/public-address.ts';

export interface FetchOptions {
  /** Default: the system's resolver. */
  readonly resolve?: ResolveHost;
  readonly isPublic?: IsPublic;
  /** Certificates to trust instead of the well-known ones. */
  readonly ca?: string;
}

export const maxImageBytes = 20 * 1024 * 1024;
const timeoutMs = 10_000;
const imageType = /^image\/(?:png|jpeg|gif|webp)(?=;|$)/;

/** Returns a data URL. Throws an Error whose message says why the image can't be used; it names no address. */
export async function fetchImage(
  url: URL,
  { resolve, isPublic, ca }: FetchOptions,
  client: AbortSignal,
): Promise<string> {
  const signal = AbortSignal.any([client, AbortSignal.timeout(timeoutMs)]);
  if (isPrivateLiteral(url, isPublic)) throw new Error(inPrivate);
  return new Promise((settle, reject) => {
    const lookup = createPublicLookup(isPublic, resolve);
    const sent = request(url, { signal, ca, agent: false, lookup });
    sent.once('error', (error) => reject(new Error(describe(error))));
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

const inPrivate = 'the host is in a private network';

function describe({ code, syscall }: NodeJS.ErrnoException): string {
  if (code === privateCode) return inPrivate;
  return syscall === 'getaddrinfo' ? 'the host has no address' : 'the host did not send it';
}
