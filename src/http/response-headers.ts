// Headers of responses as lists of alternating names and values, which Node writes with the least work; and those that
// every response carries.

import type { FastifyReply } from 'fastify';

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

export type HeaderList = (string | number)[];

/** If a name occurs more than once, the last value wins. */
export function toHeaderObject<Value extends string | number>(
  list: readonly Value[],
): Record<string, Value> {
  const headers: Record<string, Value> = {};
  for (let at = 0; at + 1 < list.length; at += 2) headers[String(list[at])] = list[at + 1] as Value;
  return headers;
}

/** Adds headers to a list, in the place of those with the same name. */
export function mergeHeaders(list: HeaderList, more: Readonly<HeaderList>): void {
  for (let at = 0; at + 1 < more.length; at += 2) {
    const [name, value] = [more[at] as string, more[at + 1] as string];
    let found = 0;
    while (found < list.length && list[found] !== name) found += 2;
    list[found] = name;
    list[found + 1] = value;
  }
}
