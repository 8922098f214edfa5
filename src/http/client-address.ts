// Where a request comes from, for limits and the audit log: the socket's address, or what the configured
// number of proxies say, if that is an address at all.

import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/** Fastify's trust rule: hop 0 is the socket itself, each proxy adds one. */
export const trustHops = (proxies: number) => (_address: string, hop: number) => hop < proxies;

export function clientAddress(request: FastifyRequest): string {
  return isIP(request.ip) > 0 ? request.ip : (request.socket.remoteAddress ?? 'unknown');
}
