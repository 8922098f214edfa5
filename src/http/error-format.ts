// Gives a Fastify scope its own way of saying no: every failure inside it, also an unknown path, a wrong
// method or a body that can't be read, goes through one renderer and leaves as JSON.

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  internal,
  invalidJson,
  methodNotAllowed,
  Refusal,
  unknownUrl,
  unsupportedMediaType,
} from '#lib/errors.ts';
import { type RawViolation, toViolation, type Violation } from '#lib/schema/validation-error.ts';
import { type Bodies, type BodyRules, createBodies, discard } from './bodies.ts';

export interface Rendered {
  status: number;
  headers?: Record<string, string>;
  body: unknown;
}

export interface Dialect {
  /** What every API refuses alike. */
  refuse(refusal: Refusal): Rendered;
  /** What the schema of a route refuses. `part` is body, params or querystring. */
  violate(violation: Violation, part: string, value: unknown): Rendered;
  /** What only this API throws; undefined for anything else. */
  own(error: unknown): Rendered | undefined;
}

/** Told of each request that has a route and was refused, with what it is answered. */
export type OnRefused = (request: FastifyRequest, reply: FastifyReply, rendered: Rendered) => void;

export function applyDialect(
  app: FastifyInstance,
  dialect: Dialect,
  body: BodyRules,
  onRefused?: OnRefused,
): Bodies {
  const routes = collectRoutes(app);
  const bodies = createBodies(body);
  app.setErrorHandler((error, request, reply) => {
    const rendered = render(dialect, error, request);
    onRefused?.(request, reply, rendered);
    if (bodies.isUnread(request) && rendered.status !== 408) {
      // Fastify would close the connection, on clients that are still sending and read no answer before.
      reply.removeHeader('connection');
      discard(request.raw, body.maxBytes);
    }
    send(reply, rendered, request, error);
  });
  const refuseUnknown = (request: FastifyRequest, reply: FastifyReply) => {
    const path = request.url.split('?', 1)[0] as string;
    const allowed = routes.methodsOf(path);
    if (allowed.length > 0) reply.header('allow', allowed.join(', '));
    const refusal =
      allowed.length > 0
        ? methodNotAllowed(request.method, path, allowed)
        : unknownUrl(request.method, path);
    send(reply, dialect.refuse(refusal), request, refusal);
  };
  app.setNotFoundHandler(refuseUnknown);
  // Before the body is read: what is wrong with it does not matter then.
  app.addHook('onRequest', (request, reply, done) => {
    // Scopes inside inherit this hook, and have their own answer.
    if (request.is404 && request.server === app) return refuseUnknown(request, reply);
    ignoreEmptyBody(request);
    bodies.expect(request, reply);
    done();
  });
  app.addHook('onRoute', (route) => {
    // Hooks of the scopes around come first, so the innermost limit is the one that holds.
    route.bodyLimit = body.maxBytes;
  });
  app.removeAllContentTypeParsers();
  const types = body.anyContentType ? '*' : /^application\/([a-z0-9.-]+\+)?json\s*(;|$)/i;
  app.addContentTypeParser(types, bodies.parse);
  return bodies;
}

/** Clients send a content type with every request; where no body is wanted and none came it means nothing. */
function ignoreEmptyBody(request: FastifyRequest): void {
  const { headers } = request;
  if (headers['content-type'] === undefined || headers['transfer-encoding'] !== undefined) return;
  // Read last: Fastify builds `routeOptions` anew each time.
  if (Number(headers['content-length']) > 0 || request.routeOptions.schema?.body !== undefined)
    return;
  delete headers['content-type'];
}

function renderKnown(dialect: Dialect, error: unknown): Rendered | undefined {
  return error instanceof Refusal ? dialect.refuse(error) : dialect.own(error);
}

/** Where the framework has no part in it: what nobody has a word for is a fault of ours. */
export const renderFailure = (dialect: Dialect, error: unknown): Rendered =>
  renderKnown(dialect, error) ?? dialect.refuse(internal(error));

function render(dialect: Dialect, error: unknown, request: FastifyRequest): Rendered {
  const known = renderKnown(dialect, error);
  if (known !== undefined) return known;
  const { validation, validationContext, code, statusCode } = error as FastifyError;
  if (validation !== undefined) {
    const part = validationContext ?? 'body';
    const value = (request as unknown as Record<string, unknown>)[part];
    return dialect.violate(toViolation(validation as RawViolation[]), part, value);
  }
  switch (code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return dialect.refuse(unsupportedMediaType(request.headers['content-type']));
    default:
      return dialect.refuse(
        isClientFault({ statusCode }) ? invalidJson('it could not be read') : internal(error),
      );
  }
}

/** What the framework itself refuses: a method that needs a body and has none, say. */
const isClientFault = ({ statusCode = 500 }: { statusCode?: number }) =>
  statusCode >= 400 && statusCode < 500;

function send(reply: FastifyReply, rendered: Rendered, request: FastifyRequest, error: unknown) {
  if (rendered.status >= 500 && rendered.status !== 503) {
    request.log.error({ err: error, request_id: request.id }, 'request failed');
  }
  reply
    .code(rendered.status)
    .headers(rendered.headers ?? {})
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(rendered.body));
}

function collectRoutes(app: FastifyInstance) {
  const patterns: { matches: RegExp; method: string }[] = [];
  app.addHook('onRoute', ({ url, method }) => {
    const source = url.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll(/:\w+/g, '[^/]+');
    const matches = new RegExp(`^${source.replaceAll('*', '.+')}/?$`);
    for (const one of [method].flat()) patterns.push({ matches, method: one });
  });
  return {
    methodsOf: (path: string) => [
      ...new Set(patterns.filter(({ matches }) => matches.test(path)).map(({ method }) => method)),
    ],
  };
}
