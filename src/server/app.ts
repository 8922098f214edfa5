// The Fastify app from ready parts. Opens nothing and listens to nothing, so that inject() can drive it.

import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import swagger from '@fastify/swagger';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from 'fastify';
import { accountsDialect } from '#accounts/errors.ts';
import { type AccountParts, accountRoutes } from '#accounts/routes.ts';
import { type UsageParts, usageRoutes } from '#accounts/usage/routes.ts';
import { cloudDashboardRoutes } from '#cloud/api/dashboard-routes.ts';
import { type CloudParts, cloudRoutes } from '#cloud/api/routes.ts';
import { isTerminal, terminalRoutes } from '#cloud/api/terminal.ts';
import { imageRoutes } from '#cloud/hosts/image-routes.ts';
import { hostRoutes } from '#cloud/hosts/routes.ts';
import { createRequestObserver } from '#http/access-log.ts';
import { trustHops } from '#http/client-address.ts';
import { applyDialect } from '#http/error-format.ts';
import { type InferenceParts, inferenceRoutes } from '#inference/api/routes.ts';
import { type BackendParts, backendRoutes } from '#inference/backends/routes.ts';
import { type WeightsParts, weightsRoutes } from '#inference/weights/routes.ts';
import { methodNotAllowed, Refusal } from '#lib/errors.ts';
import { createIdSequence, newId } from '#lib/ids.ts';
import { validatorOptions } from '#lib/schema/validator.ts';
import { answerSocket, createBadHttpHandler, dialectOf, jsonHeaders } from './bad-http.ts';
import { dashboardRoutes } from './dashboard.ts';
import type { DashboardBuild } from './dashboard-build.ts';
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
  const options: FastifyServerOptions = {
    loggerInstance: parts.log,
    logController: new LogController({ disableRequestLogging: true }),
    // Our own lines carry the request id; a logger per request would cost more than the line.
    childLoggerFactory: (logger) => logger,
    genReqId: nextId,
    trustProxy: parts.trustedProxies > 0 && trustHops(parts.trustedProxies),
    ajv: { customOptions: validatorOptions },
    routerOptions: { maxParamLength: 4096, ignoreTrailingSlash: true },
    // Ours says so in each API's dialect.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    frameworkErrors: answerBadUrl,
    clientErrorHandler: createBadHttpHandler(),
    serverFactory: (handle) =>
      parts.https
        ? createTlsServer({ ...parts.https, ...http }, handle)
        : createServer(http, handle),
  };
  const app = Fastify(options);
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
  app.register(async (scope) => inferenceRoutes(scope, parts.inference), { prefix: '/v1' });
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

const http = {
  requestTimeout: 120_000,
  keepAliveTimeout: 75_000,
  // Node would refuse a request without a host by itself, and without a body.
  requireHostHeader: false,
  // An upgrade is ignored elsewhere: a socket that has left HTTP is outside of its timeouts.
  shouldUpgradeCallback: ({ url = '' }: IncomingMessage) => isTerminal(url),
};

const isApi = (url: string) => url.startsWith('/v1/') || url.startsWith('/api/v1/');

/** Fastify could not even route it, e.g. for a broken %-escape. */
function answerBadUrl(_error: Error, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = new Refusal('unknown_url', 'The address in the request cannot be read.');
  const { status, body } = dialectOf(request.raw.url ?? '/').refuse(refusal);
  reply.code(status).headers(jsonHeaders(request.id)).send(JSON.stringify(body));
}
