// Lets pages of other sites call an API from the browser (CORS). Not @fastify/cors: the inference API writes its
// responses without Fastify's reply, so it needs the headers as a list.

import type { FastifyInstance } from 'fastify';
import { addHeaders, type HeaderList } from './response-headers.ts';

/** The headers that a response to a page of this origin needs. */
export type CorsHeaders = (origin: string | undefined) => Readonly<HeaderList>;

/**
 * Call it before any hook that refuses requests, so that a page can read the refusal. `origins` may contain `*`. No
 * response allows credentials: pages of other sites must send an API key, and can't use a person's session.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): CorsHeaders {
  if (origins.length === 0) return () => [];
  const allowsAny = origins.includes('*');
  const refused: HeaderList = allowsAny ? [] : ['vary', 'origin'];
  const byOrigin = new Map(origins.map((origin) => [origin, [...refused, ...toAllowed(origin)]]));
  const findAllowed = (origin: string | undefined) =>
    origin === undefined ? undefined : byOrigin.get(allowsAny ? '*' : origin);

  app.addHook('onRequest', (request, reply, done) => {
    const { headers, method } = request;
    const allowed = findAllowed(headers.origin);
    addHeaders(reply, allowed ?? refused);
    const asked = headers['access-control-request-method'];
    if (allowed === undefined || method !== 'OPTIONS' || asked === undefined) return done();
    reply
      .code(204)
      .headers({
        'access-control-allow-methods': 'GET, HEAD, POST',
        // Echoed, because a wildcard would not include Authorization.
        'access-control-allow-headers': headers['access-control-request-headers'] ?? '',
        'access-control-max-age': '600',
      })
      .send();
  });
  return (origin) => findAllowed(origin) ?? refused;
}

const toAllowed = (origin: string): HeaderList => [
  ...['access-control-allow-origin', origin],
  ...['access-control-expose-headers', '*'],
];
