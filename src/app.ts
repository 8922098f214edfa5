// The Fastify app from ready parts. Opens nothing and listens to nothing, so that inject() can drive it.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import swagger from '@fastify/swagger';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from 'fastify';
import { accountsDialect } from './accounts/errors.ts';
import { type AccountParts, accountRoutes } from './accounts/routes.ts';
import { type UsageParts, usageRoutes } from './accounts/usage/routes.ts';
import { cloudDashboardRoutes } from './cloud/dashboard-routes.ts';
import { cloudDialect } from './cloud/errors.ts';
import { imageRoutes } from './cloud/hosts/image-routes.ts';
import { hostRoutes } from './cloud/hosts/routes.ts';
import { type CloudParts, cloudRoutes } from './cloud/routes.ts';
import { isTerminal, terminalRoutes } from './cloud/terminal.ts';
import { dashboardRoutes } from './dashboard.ts';
import type { DashboardBuild } from './dashboard-build.ts';
import { type BackendParts, backendRoutes } from './inference/backends/routes.ts';
import { inferenceDialect } from './inference/errors.ts';
import { createExpressLane } from './inference/express-lane.ts';
import { compileBodies, type InferenceParts, inferenceRoutes } from './inference/routes.ts';
import { type WeightsParts, weightsRoutes } from './inference/weights/routes.ts';
import { trustHops } from './lib/client-address.ts';
import { applyDialect, type Dialect } from './lib/dialect.ts';
import { methodNotAllowed, Refusal } from './lib/errors.ts';
import { type Admit, takeConnections, takeRequests } from './lib/http1/front.ts';
import { createIdSequence, newId } from './lib/ids.ts';
import { hasLongBody } from './lib/long-body.ts';
import { createRequestObserver } from './lib/observe-request.ts';
import { openapi } from './openapi.ts';
import { type OpsParts, observeRequests, opsRoutes } from './ops.ts';

export interface AppParts {
  log: FastifyBaseLogger;
  /** How many hops of x-forwarded-for to believe. */
  trustedProxies: number;
  https: { cert: Buffer; key: Buffer } | null;
  ops: OpsParts;
  accounts: AccountParts;
  inference: InferenceParts;
  cloud: CloudParts;
  weights: WeightsParts;
  backends: BackendParts;
  usage: UsageParts;
  dashboard: DashboardBuild;
}

export async function createApp(parts: AppParts): Promise<FastifyInstance> {
  const nextId = createIdSequence();
  const observe = createRequestObserver(parts.log, parts.ops.registry);
  let expressLane: Admit | null = null;
  const options: FastifyServerOptions = {
    loggerInstance: parts.log,
    logController: new LogController({ disableRequestLogging: true }),
    // Our own lines carry the request id; a logger per request would cost more than the line.
    childLoggerFactory: (logger) => logger,
    genReqId: nextId,
    trustProxy: parts.trustedProxies > 0 && trustHops(parts.trustedProxies),
    // Coercion would turn {"temperature": null} into 0; removal would eat what engines may understand.
    ajv: {
      customOptions: {
        coerceTypes: false,
        removeAdditional: false,
        useDefaults: false,
        verbose: true,
      },
    },
    routerOptions: { maxParamLength: 4096, ignoreTrailingSlash: true },
    // Ours says so in each API's dialect.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    frameworkErrors: answerBadUrl,
    clientErrorHandler: answerBadHttp,
  };
  const http = {
    requestTimeout: 120_000,
    keepAliveTimeout: 75_000,
    // Node would refuse a request without a host by itself, and without a body.
    requireHostHeader: false,
    // Elsewhere a wish to upgrade is not heard: a socket that left HTTP is outside of its time limits.
    shouldUpgradeCallback: ({ url = '' }: IncomingMessage) => isTerminal(url),
  };
  const app = Fastify({
    ...options,
    serverFactory(route) {
      const admit: Admit = (head, reply) => expressLane?.(head, reply) ?? null;
      const take = takeRequests(admit, route);
      const server = parts.https
        ? createTlsServer({ ...parts.https, ...http }, take)
        : createServer(http, take);
      takeConnections(server, admit);
      return server;
    },
  });
  app.server.on('checkExpectation', (request, response) => {
    const refusal = new Refusal('invalid_json', 'Only "Expect: 100-continue" is understood.');
    const { body } = dialectOf(request.url ?? '/').refuse(refusal);
    const text = JSON.stringify(body);
    const length = { 'content-length': Buffer.byteLength(text) };
    response.writeHead(417, { ...jsonHeaders(newId()), ...length }).end(text);
  });
  app.server.on('connect', (request, socket) => {
    const refusal = methodNotAllowed('CONNECT', request.url ?? '/', ['GET', 'POST']);
    answerSocket(socket, '405 Method Not Allowed', accountsDialect.refuse(refusal).body);
  });
  await app.register(swagger, openapi);
  observeRequests(app, observe);
  applyDialect(app, accountsDialect, { maxBytes: 65_536, anyContentType: false });
  app.addHook('onRequest', (request, reply, done) => {
    if (!parts.ops.isDraining() || !isApi(request.url)) return done();
    reply.header('connection', 'close');
    done(new Refusal('shutting_down', 'The server is shutting down.', { retryAfterMs: 1000 }));
  });

  opsRoutes(app, parts.ops);
  app.register(
    async (scope) => {
      inferenceRoutes(scope, parts.inference);
      scope.addHook('onReady', async () => {
        expressLane = createExpressLane({
          ...parts.inference,
          validators: compileBodies(scope),
          newId: nextId,
          isDraining: parts.ops.isDraining,
          observe,
          log: parts.log,
        });
      });
    },
    { prefix: '/v1' },
  );
  app.register(async (scope) => cloudRoutes(scope, parts.cloud), { prefix: '/api/v1' });
  app.register(async (scope) => accountRoutes(scope, parts.accounts), { prefix: '/dashboard/api' });
  app.register(async (scope) => cloudDashboardRoutes(scope, parts.cloud), {
    prefix: '/dashboard/api',
  });
  app.register(async (scope) => hostRoutes(scope, parts.cloud), { prefix: '/dashboard/api' });
  app.register(async (scope) => imageRoutes(scope, parts.cloud), { prefix: '/dashboard/api' });
  app.register(async (scope) => terminalRoutes(scope, parts.cloud), { prefix: '/dashboard/api' });
  app.register(async (scope) => weightsRoutes(scope, parts.weights), {
    prefix: '/dashboard/api/weights',
  });
  app.register(async (scope) => backendRoutes(scope, parts.backends), {
    prefix: '/dashboard/api/backends',
  });
  app.register(async (scope) => usageRoutes(scope, parts.usage), { prefix: '/dashboard/api' });
  app.register(async (scope) => dashboardRoutes(scope, parts.dashboard));
  return app;
}

const isApi = (url: string) => url.startsWith('/v1/') || url.startsWith('/api/v1/');

function dialectOf(url: string): Dialect {
  if (/^\/v1(\/|\?|$)/.test(url)) return inferenceDialect;
  return /^\/api\/v1(\/|\?|$)/.test(url) ? cloudDialect : accountsDialect;
}

/** Fastify could not even route it, e.g. for a broken %-escape. */
function answerBadUrl(_error: Error, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = new Refusal('unknown_url', 'The address in the request cannot be read.');
  const { status, body } = dialectOf(request.raw.url ?? '/').refuse(refusal);
  reply.code(status).headers(jsonHeaders(request.id)).send(JSON.stringify(body));
}

/** Node's own names for the request being read and the answer being sent; its default handler looks at them too. */
type HttpSocket = Socket & {
  parser?: { incoming?: IncomingMessage | null } | null;
  _httpMessage?: ServerResponse | null;
};

interface HttpError extends Error {
  code?: string;
  rawPacket?: unknown;
  /** Where it is known. */
  path?: string;
}

/** Those that have their last answer to wait for. */
const ending = new WeakSet<Socket>();

/** It was not HTTP, or not whole, or headers beyond the bounds: there is no request, only a socket. */
function answerBadHttp(error: HttpError, socket: HttpSocket): void {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && hasLongBody(socket)) return;
  const incoming = socket.parser?.incoming ?? null;
  const answer = socket._httpMessage ?? null;
  const isAnswered = incoming?.complete === false && answer === null;
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswered) {
    socket.destroy();
    return;
  }
  const tell = () => socket.writable && tellBadHttp(error, incoming, socket);
  if (answer === null) tell();
  // It is about what came behind the request that is being answered.
  else if (incoming?.complete === true) {
    if (!ending.has(socket)) answer.once('finish', tell);
    ending.add(socket);
  }
  // In the middle of an answer ours would become part of that one.
  else if (answer.headersSent) socket.destroy();
  else tell();
}

function tellBadHttp(error: HttpError, incoming: IncomingMessage | null, socket: Socket): void {
  const start = Buffer.isBuffer(error.rawPacket) ? error.rawPacket.toString('latin1', 0, 2048) : '';
  const named = incoming?.complete === false ? incoming.url : undefined;
  const url = error.path ?? named ?? /^[A-Z]+ (\S+)/.exec(start)?.[1] ?? '/';
  const [line, refusal] = toBadHttp(error);
  answerSocket(socket, line, dialectOf(url).refuse(refusal).body);
}

function toBadHttp({ code }: HttpError): [line: string, Refusal] {
  if (code === 'HPE_HEADER_OVERFLOW') {
    const refusal = new Refusal('too_large', 'The headers of the request are too large.');
    return ['431 Request Header Fields Too Large', refusal];
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return ['408 Request Timeout', new Refusal('timed_out', 'The request did not come in time.')];
  const isCut = code === 'HPE_INVALID_EOF_STATE';
  const why = isCut
    ? 'The request ended before it was whole.'
    : 'This is not a valid HTTP request.';
  return ['400 Bad Request', new Refusal('invalid_json', why)];
}

const jsonHeaders = (requestId: string) => ({
  'content-type': 'application/json; charset=utf-8',
  'x-request-id': requestId,
});

/** Where there is no response to write to. */
function answerSocket(socket: Duplex, line: string, body: unknown): void {
  const text = JSON.stringify(body);
  const headers = { ...jsonHeaders(newId()), 'content-length': Buffer.byteLength(text) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${line}\r\n${lines.join('')}connection: close\r\n\r\n${text}`);
}
