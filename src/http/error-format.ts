// Gives a Fastify scope its error format: every failure inside it, including an unknown path, a wrong method and
// an unreadable body, is rendered as JSON by the same object.

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Bodies, type BodyRules, createBodies, discard } from '#http/body/bodies.ts';
import { isDiskFullCode } from '#lib/computer/disk-space.ts';
import {
  diskFull,
  internal,
  invalidJson,
  methodNotAllowed,
  Refusal,
  unknownUrl,
  unsupportedMediaType,
} from '#lib/errors.ts';
import { type RawViolation, toViolation, type Violation } from '#lib/schema/validation-error.ts';

export interface Rendered {
  status: number;
  headers?: Record<string, string>;
  body: unknown;
  /** The error's code in usage rows, if the body does not have it. */
  code?: string;
}

/** An error that was rendered elsewhere, such as in a thread. */
export class RenderedError extends Error {
  readonly rendered: Rendered;

  constructor(rendered: Rendered) {
    super('The request was refused');
    this.rendered = rendered;
  }
}

export interface ErrorFormat {
  /** Renders an error that every API shares. */
  renderRefusal(refusal: Refusal): Rendered;
  /** Renders a violation of a route's schema. `part` is body, params or querystring. */
  renderViolation(violation: Violation, part: string, value: unknown): Rendered;
  /** Renders an error that only this API throws. Returns undefined for any other. */
  renderOwn(error: unknown): Rendered | undefined;
  /** Adds the request's id to a rendered body, if the API's errors carry it. */
  withId?(body: unknown, requestId: string): unknown;
}

/** The same errors in another form, without `withId`, which depends on the form. */
export const mapErrorFormat = (
  { renderRefusal, renderViolation, renderOwn }: ErrorFormat,
  change: (rendered: Rendered) => Rendered,
): ErrorFormat => ({
  renderRefusal: (refusal) => change(renderRefusal(refusal)),
  renderViolation: (...violation) => change(renderViolation(...violation)),
  renderOwn(error) {
    const rendered = renderOwn(error);
    return rendered && change(rendered);
  },
});

/** Called for each refused request that has a route, with the response it gets. */
export type OnRefused = (request: FastifyRequest, reply: FastifyReply, rendered: Rendered) => void;

export function applyErrorFormat(
  app: FastifyInstance,
  format: ErrorFormat,
  body: BodyRules,
  onRefused?: OnRefused,
): Bodies {
  const routes = collectRoutes(app);
  const bodies = createBodies(body);
  app.setErrorHandler((error, request, reply) => {
    const rendered = render(format, error, request);
    onRefused?.(request, reply, rendered);
    if (bodies.isUnread(request) && rendered.status !== 408) {
      // Fastify would close the connection, and a client that is still sending would never read the response.
      reply.removeHeader('connection');
      discard(request.raw, body.maxBytes);
    }
    send(reply, format, rendered, { request, error });
  });
  const refuseUnknown = (request: FastifyRequest, reply: FastifyReply) => {
    const path = (request.url.split('?', 1)[0] as string).replaceAll(/\/{2,}/g, '/');
    const allowed = routes.methodsOf(path);
    if (allowed.length > 0) reply.header('allow', allowed.join(', '));
    const refusal =
      allowed.length > 0
        ? methodNotAllowed(request.method, path, allowed)
        : unknownUrl(request.method, path);
    send(reply, format, format.renderRefusal(refusal), { request, error: refusal });
  };
  app.setNotFoundHandler(refuseUnknown);
  // Checked before the body is read, so that an error in the body does not hide the wrong path.
  app.addHook('onRequest', (request, reply, done) => {
    // Nested scopes inherit this hook but have their own error format.
    if (request.is404 && request.server === app) return refuseUnknown(request, reply);
    ignoreEmptyBody(request);
    bodies.expect(request, reply);
    done();
  });
  app.addHook('onRoute', (route) => {
    // Hooks of outer scopes run first, so the innermost limit applies.
    route.bodyLimit = body.maxBytes;
  });
  app.removeAllContentTypeParsers();
  const types = body.anyContentType ? '*' : /^application\/([a-z0-9.-]+\+)?json\s*(;|$)/i;
  app.addContentTypeParser(types, bodies.parse);
  return bodies;
}

/** Drops the content type of a request without a body: some clients send one with every request. */
function ignoreEmptyBody(request: FastifyRequest): void {
  const { headers } = request;
  if (headers['content-type'] === undefined || headers['transfer-encoding'] !== undefined) return;
  // `routeOptions` is read last, because Fastify builds it anew each time.
  if (Number(headers['content-length']) > 0 || request.routeOptions.schema?.body !== undefined)
    return;
  delete headers['content-type'];
}

function renderKnown(format: ErrorFormat, error: unknown): Rendered | undefined {
  if (error instanceof RenderedError) return error.rendered;
  if (isDiskFullCode((error as NodeJS.ErrnoException).code)) {
    return format.renderRefusal(diskFull(error));
  }
  return error instanceof Refusal ? format.renderRefusal(error) : format.renderOwn(error);
}

/** Renders an error outside of Fastify's handlers. An unknown error is internal. */
export const renderFailure = (format: ErrorFormat, error: unknown): Rendered =>
  renderKnown(format, error) ?? format.renderRefusal(internal(error));

function render(format: ErrorFormat, error: unknown, request: FastifyRequest): Rendered {
  const known = renderKnown(format, error);
  if (known !== undefined) return known;
  const { validation, validationContext, code, statusCode } = error as FastifyError;
  if (validation !== undefined) {
    const part = validationContext ?? 'body';
    const value = (request as unknown as Record<string, unknown>)[part];
    return format.renderViolation(toViolation(validation as RawViolation[]), part, value);
  }
  switch (code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return format.renderRefusal(unsupportedMediaType(request.headers['content-type']));
    default:
      return format.renderRefusal(
        isClientFault({ statusCode }) ? invalidJson('it could not be read') : internal(error),
      );
  }
}

/** True for requests that Fastify itself refuses, such as one without the body that its method needs. */
const isClientFault = ({ statusCode = 500 }: { statusCode?: number }) =>
  statusCode >= 400 && statusCode < 500;

/** True for failures of the server that its operator should know of; overload is none. */
export const isFault = ({ status }: Rendered) => status >= 500 && status !== 503 && status !== 529;

function send(
  reply: FastifyReply,
  format: ErrorFormat,
  rendered: Rendered,
  { request, error }: { request: FastifyRequest; error: unknown },
) {
  if (isFault(rendered)) {
    request.log.error({ err: error, request_id: request.id }, 'request failed');
  }
  reply
    .code(rendered.status)
    .headers(rendered.headers ?? {})
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(format.withId?.(rendered.body, request.id) ?? rendered.body));
}

function collectRoutes(app: FastifyInstance) {
  const patterns: { matches: RegExp; method: string; isExact: boolean }[] = [];
  app.addHook('onRoute', ({ url, method }) => {
    const source = url.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll(/:\w+/g, '[^/]+');
    const matches = new RegExp(`^${source.replaceAll('*', '.+')}/?$`);
    const isExact = !/[:*]/.test(url);
    for (const one of [method].flat()) patterns.push({ matches, method: one, isExact });
  });
  return {
    /** The methods of the path's own routes. Routes with parameters count only if it has none. */
    methodsOf(path: string): string[] {
      const matching = patterns.filter(({ matches }) => matches.test(path));
      const exact = matching.filter(({ isExact }) => isExact);
      return [...new Set((exact.length > 0 ? exact : matching).map(({ method }) => method))];
    },
  };
}
