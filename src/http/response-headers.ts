// Headers that every response carries. A list, because the inference API sends it with each response as it is.

import type { FastifyReply } from 'fastify';
import type { HeaderList } from './header-list.ts';

export function toFixedHeaders({ isTls }: { isTls: boolean }): Readonly<HeaderList> {
  return [
    // Browsers must not guess a type: what a tenant stored could become a script.
    ...['x-content-type-options', 'nosniff'],
    // Responses hold secrets and prompts. Files of the dashboard replace this header.
    ...['cache-control', 'no-store'],
    // For this name only: the operator may have other names without TLS below it.
    ...(isTls ? ['strict-transport-security', 'max-age=31536000'] : []),
  ];
}

export function addHeaders(reply: FastifyReply, headers: Readonly<HeaderList>): void {
  for (let at = 0; at + 1 < headers.length; at += 2) {
    reply.header(String(headers[at]), headers[at + 1]);
  }
}
