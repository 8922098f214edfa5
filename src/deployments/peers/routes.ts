// What servers of one database ask each other about deployments. Each accepts its own key, which the others read from the
// database. No person calls these routes.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { ClientDisconnect } from '#http/client-disconnect.ts';
import { applyErrorFormat, renderFailure } from '#http/error-format.ts';
import { EngineError } from '#inference/engine.ts';
import { inferenceErrorFormat, toInferenceError } from '#inference/errors.ts';
import { invalidCredentials } from '#lib/errors.ts';
import { type Static, Type } from '#lib/schema/schema-builder.ts';
import { equalHashes, hashToken } from '#lib/secrets/secrets.ts';
import { forward } from './forward.ts';
import type { PeerService } from './peer-service.ts';

const params = Type.Object({ id: Type.String({ maxLength: 64 }) });
const replicaParams = Type.Object({
  ...params.properties,
  replica: Type.String({ maxLength: 128 }),
});
type ReplicaName = Static<typeof replicaParams>;
const Demand = Type.Object({
  server: Type.String({ maxLength: 64 }),
  waiting: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
});

/** Paths of engines, except those that no server asks another one for. */
const enginePaths = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/rerank',
  '/tokenize',
  '/detokenize',
  '/apply-template',
];

export interface PeerParts {
  readonly service: PeerService;
  /** The key that the others must send. */
  readonly key: string;
}

export function peerRoutes(scope: FastifyInstance, { service, key }: PeerParts): void {
  const wanted = hashToken(key);
  scope.addHook('onRequest', (request, _reply, done) => {
    const sent = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    done(equalHashes(hashToken(sent), wanted) ? undefined : invalidCredentials('***'));
  });
  scope.register(async (inner) => stateRoutes(inner, service));
  scope.register(async (inner) => forwardRoutes(inner, service));
}

function stateRoutes(scope: FastifyInstance, service: PeerService): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  applyErrorFormat(scope, inferenceErrorFormat, { maxBytes: 4_096, anyContentType: false });
  app.post('/:id/demand', { schema: { hide: true, params, body: Demand } }, (request) => {
    const { server, waiting } = request.body;
    return service.takeDemand(request.params.id, server, waiting);
  });
  app.post('/:id/reset-backoff', { schema: { hide: true, params } }, async (request) => {
    await service.resetBackoff(request.params.id);
    return {};
  });
  app.get('/:id/stats', { schema: { hide: true, params } }, (request) =>
    service.stats(request.params.id),
  );
  app.get('/:id/log', { schema: { hide: true, params } }, async (request) =>
    service.log(request.params.id),
  );
}

/** The body is passed on as it comes. */
function forwardRoutes(scope: FastifyInstance, service: PeerService): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  for (const path of enginePaths)
    scope.post<{ Params: ReplicaName }>(
      `/:id/replicas/:replica${path}`,
      { schema: { hide: true, params: replicaParams } },
      (request, reply) => passOn(service, request.params, path, reply),
    );
}

async function passOn(
  service: PeerService,
  { id, replica }: ReplicaName,
  path: string,
  reply: FastifyReply,
): Promise<void> {
  const signal = new ClientDisconnect(reply.raw);
  try {
    const lease = await service.lease(id, replica, signal);
    const outcome = await forward(lease, path, reply).catch(() => null);
    lease.release(signal.aborted ? 'unknown' : (outcome ?? 'failed'));
    if (outcome !== null) return;
    await lease.done();
    throw new EngineError('unavailable', 'The replica did not answer.');
  } catch (error) {
    if (signal.aborted) return;
    const known = toInferenceError(error, service.modelOf(id));
    const { status, headers, body } = renderFailure(inferenceErrorFormat, known ?? error);
    await reply
      .code(status)
      .headers(headers ?? {})
      .send(body);
  }
}
