// Builds the Fastify app from ready parts. It opens nothing and doesn't listen, so that inject() can drive it.

import { hostname } from 'node:os';
import swagger from '@fastify/swagger';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from 'fastify';
import { findPrincipal } from '#accounts/authenticate.ts';
import { type ConversationParts, conversationRoutes } from '#accounts/conversations/routes.ts';
import { accountsErrorFormat } from '#accounts/errors.ts';
import { type AccountParts, accountRoutes } from '#accounts/routes.ts';
import { type UsageParts, usageRoutes } from '#accounts/usage/routes.ts';
import { cloudDashboardRoutes } from '#cloud/api/dashboard-routes.ts';
import { type CloudRouteParts, cloudRoutes } from '#cloud/api/routes.ts';
import { terminalRoutes } from '#cloud/api/terminal.ts';
import type { Cloud } from '#cloud/cloud.ts';
import { imageRoutes } from '#cloud/hosts/image-routes.ts';
import { hostRoutes } from '#cloud/hosts/routes.ts';
import { type PeerParts, peerRoutes } from '#deployments/peers/routes.ts';
import { type DeploymentRouteParts, deploymentRoutes } from '#deployments/routes.ts';
import { type LineMembers, observeRequests } from '#http/access-log.ts';
import { applyErrorFormat } from '#http/error-format.ts';
import { clientAddress, createHostCheck, trustHops } from '#http/request-head.ts';
import { toFixedHeaders } from '#http/response-headers.ts';
import { findApi } from '#inference/apis/apis.ts';
import { type InferenceParts, inferenceRoutes } from '#inference/apis/routes.ts';
import { type BackendParts, backendRoutes } from '#inference/backends/routes.ts';
import { toCaller } from '#inference/request.ts';
import { type WeightsParts, weightsRoutes } from '#inference/weights/routes.ts';
import { Refusal } from '#lib/errors.ts';
import { createIdSequence } from '#lib/ids.ts';
import { compileLater } from '#lib/schema/compile-later.ts';
import { openapi } from '#server/openapi/document.ts';
import { errorFormatOf, jsonHeaders } from './bad-http.ts';
import { dashboardRoutes, sendUnknownPage } from './dashboard.ts';
import type { DashboardBuild } from './dashboard-build.ts';
import { helpRoutes } from './help.ts';
import { createHttpServer } from './http-server.ts';
import { type OpsParts, opsRoutes } from './ops.ts';

export interface AppParts {
  log: FastifyBaseLogger;
  /** Number of trusted proxies in x-forwarded-for. */
  trustedProxies: number;
  /** Connections of one client address. */
  maxPerClient: number;
  https: { cert: Buffer; key: Buffer } | null;
  /** Names that the Host header may have besides those of the loopback interface; null for any. */
  allowedHosts: readonly string[] | null;
  ops: OpsParts;
  accounts: AccountParts & ConversationParts;
  inference: Omit<InferenceParts, 'fixedHeaders'>;
  cloud: CloudRouteParts & { cloud: Cloud };
  weights: WeightsParts;
  backends: BackendParts;
  usage: UsageParts;
  /** `peers` is null if no other server uses the database. */
  deployments: DeploymentRouteParts & { peers: PeerParts | null };
  dashboard: DashboardBuild;
}

export async function createApp(parts: AppParts): Promise<FastifyInstance> {
  const nextId = createIdSequence();
  const { trustedProxies, maxPerClient } = parts;
  const options: FastifyServerOptions = {
    loggerInstance: parts.log,
    logController: new LogController({ disableRequestLogging: true }),
    // The access log's lines carry the request id. A logger per request would cost more than the line.
    childLoggerFactory: (logger) => logger,
    genReqId: nextId,
    trustProxy: trustedProxies > 0 && trustHops(trustedProxies),
    // Base URLs that end in a slash lead to paths such as /api/v1//instances.
    routerOptions: {
      maxParamLength: 4096,
      ignoreTrailingSlash: true,
      ignoreDuplicateSlashes: true,
    },
    // app.ts refuses requests while draining, in each API's error format.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    frameworkErrors: answerBadUrl,
    // Fastify would attach it to the first server only.
    clientErrorHandler: () => {},
    serverFactory: (handle) =>
      createHttpServer(parts.https, trustedProxies > 0 ? null : maxPerClient, handle),
  };
  const app = Fastify(options);
  compileLater(app);
  await app.register(swagger, openapi);
  const fixedHeaders = toFixedHeaders({ isTls: parts.https !== null });
  observeRequests(app, parts.log, parts.ops.registry, fixedHeaders, toLineMembers);
  const checkHost = createHostCheck(parts.allowedHosts);
  app.addHook('onRequest', (request, reply, done) => {
    const refusal = checkHost(request.raw);
    if (refusal !== null) return done(refusal);
    if (isLostVisitor(request)) return sendUnknownPage(reply);
    if (parts.ops.state.phase !== 'draining' || !isApi(request.url)) return done();
    reply.header('connection', 'close');
    done(new Refusal('shutting_down', 'The server is shutting down.', { retryAfterMs: 1000 }));
  });
  applyErrorFormat(app, accountsErrorFormat, { maxBytes: 65_536, anyContentType: false });

  opsRoutes(app, parts.ops);
  inferenceRoutes(app, { ...parts.inference, fixedHeaders });
  app.register(async (scope) => cloudRoutes(scope, parts.cloud), { prefix: '/api/v1' });
  addDeployments(app, parts.deployments);
  app.register(async (scope) => dashboardApiRoutes(scope, parts), { prefix: '/dashboard/api' });
  app.register(async (scope) => {
    await dashboardRoutes(scope, parts.dashboard);
    helpRoutes(scope, parts.dashboard);
  });
  return app;
}

const serverName = hostname();

/** The caller of a request, for the access log. */
function toLineMembers(request: FastifyRequest): LineMembers {
  const address = clientAddress(request);
  const principal = findPrincipal(request);
  if (principal === null) return { server: serverName, address };
  const { accountId, keyId, userId } = toCaller(principal);
  const caller = keyId === null ? { user_id: userId } : { key_id: keyId };
  return { server: serverName, address, account_id: accountId, ...caller };
}

function addDeployments(app: FastifyInstance, parts: AppParts['deployments']): void {
  const { peers } = parts;
  app.register(async (scope) => deploymentRoutes(scope, parts), { prefix: '/api/v1/deployments' });
  if (peers !== null)
    app.register(async (scope) => peerRoutes(scope, peers), { prefix: '/peer/v1/deployments' });
}

/** The API of the dashboard and the CLI. Each part brings its own routes. */
function dashboardApiRoutes(
  app: FastifyInstance,
  { accounts, cloud, weights, backends, usage }: AppParts,
): void {
  app.register(async (scope) => accountRoutes(scope, accounts));
  app.register(async (scope) => conversationRoutes(scope, accounts), { prefix: '/playground' });
  app.register(async (scope) => usageRoutes(scope, usage));
  app.register(async (scope) => cloudDashboardRoutes(scope, cloud));
  app.register(async (scope) => hostRoutes(scope, cloud.authenticator, cloud.cloud.hostChanges));
  app.register(async (scope) => imageRoutes(scope, cloud.authenticator, cloud.cloud.hostImages));
  app.register(async (scope) => terminalRoutes(scope, cloud));
  app.register(async (scope) => weightsRoutes(scope, weights), { prefix: '/weights' });
  app.register(async (scope) => backendRoutes(scope, backends), { prefix: '/backends' });
}

/** The cloud's prefix is inside Ollama's. */
const isApi = (url: string) => findApi(url) !== undefined;

/** A person whose browser asks for a page that does not exist. */
const isLostVisitor = ({ is404, method, url, headers }: FastifyRequest) =>
  is404 &&
  method === 'GET' &&
  headers.accept?.includes('text/html') === true &&
  !isApi(url) &&
  !url.startsWith('/dashboard/api/');

/** Fastify could not route the URL, for example because of a broken %-escape. */
function answerBadUrl(_error: Error, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = new Refusal('unknown_url', 'The URL of the request cannot be decoded.');
  const format = errorFormatOf(request.raw.url ?? '/');
  const { status, body } = format.renderRefusal(refusal);
  const shown = format.withId?.(body, request.id) ?? body;
  reply.code(status).headers(jsonHeaders(request.id)).send(JSON.stringify(shown));
}
