// What the head of a request claims, believed only as far as it can be checked: the address it came
// from, for limits and the audit log, and the name in its Host header.

import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { Refusal } from '#lib/errors.ts';

/** A trust rule for Fastify: hop 0 is the socket, and each proxy adds one. */
export const trustHops = (proxies: number) => (_address: string, hop: number) => hop < proxies;

/** The socket's, or the one reported by the configured number of proxies if it is a valid address. */
export function clientAddress(request: FastifyRequest): string {
  return isIP(request.ip) > 0 ? request.ip : (request.socket.remoteAddress ?? 'unknown');
}

/**
 * Checks the Host header. A page on the internet can point its own name at 127.0.0.1 (DNS
 * rebinding) and then talk to a server on the visitor's computer as if it were its own; the name in
 * the header gives it away. `names` are those that the header may have, besides those of the
 * loopback interface; null allows any.
 */
export function createHostCheck(
  names: readonly string[] | null,
): (request: IncomingMessage) => Refusal | null {
  const others = (names ?? []).map((name) => RegExp.escape(name));
  const allowed = new RegExp(`^(?:${[...loopbackNames, ...others].join('|')})\\.?(?::\\d*)?$`, 'i');
  /** Most requests have the same name. */
  let last: string | undefined;
  return ({ headers: { host }, rawHeaders, httpVersionMajor, httpVersionMinor }) => {
    if (host === undefined) {
      // Only HTTP/1.1 requires it. No browser speaks an older version.
      return httpVersionMajor === 1 && httpVersionMinor === 1 ? missingHost() : null;
    }
    // Node keeps the first. A proxy in front may have looked at the last. RFC 9112, section 3.2.
    if (countHosts(rawHeaders) > 1) return repeatedHost();
    if (names === null || host === last) return null;
    if (!allowed.test(host)) return misdirected();
    last = host;
    return null;
  };
}

const loopbackNames = [
  'localhost',
  '[a-z0-9.-]+\\.localhost',
  '127(?:\\.\\d{1,3}){3}',
  '\\[::1\\]',
];

export const isLoopback = (host: string) => /^(localhost|127(\.\d{1,3}){3}|::1)$/i.test(host);

function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count;
}

const missingHost = () => new Refusal('invalid_http', 'The request has no Host header.');

const repeatedHost = () =>
  new Refusal('invalid_http', 'The request has more than one Host header.');

const misdirected = () =>
  new Refusal(
    'misdirected',
    'This server does not answer for the name in the Host header. To allow it, set server.public_url or server.allowed_hosts.',
  );
