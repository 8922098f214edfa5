// The address a request came from, for limits and the audit log: the socket's, or the one reported by the
// configured number of proxies if it is a valid address.

import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/** A trust rule for Fastify: hop 0 is the socket, and each proxy adds one. */
export const trustHops = (proxies: number) => (_address: string, hop: number) => hop < proxies;

export function clientAddress(request: FastifyRequest): string {
  return isIP(request.ip) > 0 ? request.ip : (request.socket.remoteAddress ?? 'unknown');
}
