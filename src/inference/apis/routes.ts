// Registers the inference APIs. All endpoints share one road: authentication, a body within its bounds, its schema, its
// translation into a task, and `serve`.

import type {} from '@fastify/swagger';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  type Authenticator,
  findPrincipal,
  principalOf,
  refuseViewer,
} from '#accounts/authenticate.ts';
import type { Principal } from '#accounts/principal.ts';
import type { RunningRequests } from '#accounts/running-requests.ts';
import { holdLine, type LineMembers } from '#http/access-log.ts';
import type { BodyRules, LargeBodies } from '#http/body/bodies.ts';
import { memberTexts, type WithMemberTexts } from '#http/body/json.ts';
import { ClientDisconnect } from '#http/client-disconnect.ts';
import { allowOrigins } from '#http/cors.ts';
import { applyErrorFormat, type OnRefused } from '#http/error-format.ts';
import { type HeaderList, mergeHeaders, toHeaderObject } from '#http/response-headers.ts';
import {
  createEventStreams,
  type EventStream,
  type EventStreams,
  eventStreamHeaders,
} from '#http/sse.ts';
import type { Batches } from '#inference/apis/batches/batches.ts';
import { batchRoutes } from '#inference/apis/batches/routes.ts';
import type { Files } from '#inference/apis/files/files.ts';
import { fileRoutes } from '#inference/apis/files/routes.ts';
import { modelRoutes } from '#inference/apis/models/routes.ts';
import { ollamaRoutes } from '#inference/apis/ollama/routes.ts';
import type { ResponsesParts } from '#inference/apis/responses/parts.ts';
import { type SendStream, storedRoutes } from '#inference/apis/responses/stored/stored-routes.ts';
import type { ServedModels } from '#inference/backends/backend.ts';
import { HttpDelivery } from '#inference/delivery.ts';
import { codeOf, rightEnded } from '#inference/errors.ts';
import type { Catalog, CatalogEntry } from '#inference/models/catalog.ts';
import type { ModelKind } from '#inference/pooling.ts';
import { modelIn, type RequestIdentity, toCaller, withConversation } from '#inference/request.ts';
import type { CountPrompt } from '#inference/serving/count-prompt.ts';
import type { ServedRequest } from '#inference/serving/meter.ts';
import { withOwnNames } from '#inference/serving/own-names.ts';
import type { RequestAccounting } from '#inference/serving/request-accounting.ts';
import type { Serve } from '#inference/serving/serve.ts';
import { createLazyCheck } from '#lib/schema/validator.ts';
import { type ApiParts, apis, findEndpoint } from './apis.ts';
import type { Api, Endpoint, Follow, Generation, PromptCount, Translation } from './endpoint.ts';

export interface InferenceParts {
  authenticator: Authenticator;
  /** Where requests are while they are served. */
  running: RunningRequests;
  catalog: Catalog;
  kindOf(entry: CatalogEntry): ModelKind;
  backends: ServedModels;
  serve: Serve;
  countPrompt: CountPrompt;
  accounting: RequestAccounting;
  responses: ResponsesParts;
  files: Files;
  batches: Batches;
  maxBodyBytes: number;
  maxBodyValues: number;
  /** Silence after which a stream is kept alive. */
  keepAliveMs: number;
  largeBodies: LargeBodies;
  /** Headers of every response. */
  fixedHeaders: Readonly<HeaderList>;
  /** Origins of other sites whose pages may call the API from a browser; `*` for any. */
  allowedOrigins: readonly string[];
}

/** The routes that generate nothing, by the prefix of their scope. */
const otherRoutes: Readonly<Record<string, AddRoutes>> = {
  '/v1'(scope, { authenticator, catalog, backends, files, batches, responses }, follow) {
    modelRoutes(scope, catalog, backends);
    batchRoutes(scope, batches);
    scope.register(async (prompts) => {
      prompts.addHook('onRequest', async (request) => refuseViewer(request));
      fileRoutes(prompts, files, authenticator);
      storedRoutes(prompts, responses, follow);
    });
  },
  '/api': (scope, { catalog, backends, kindOf }) => ollamaRoutes(scope, catalog, backends, kindOf),
};

type AddRoutes = (scope: FastifyInstance, parts: InferenceParts, follow: SendStream) => void;

export function inferenceRoutes(app: FastifyInstance, parts: InferenceParts): void {
  const streams = createEventStreams(parts.keepAliveMs);
  for (const api of apis) {
    const { prefix } = api;
    app.register(
      async (scope) => {
        const { handle, follow } = openScope(scope, parts, api, streams);
        // The API reference shows them in this order: models first.
        otherRoutes[prefix]?.(scope, parts, follow);
        for (const endpoint of api.endpoints) addEndpoint(scope, api, endpoint, handle);
      },
      { prefix },
    );
  }
}

type Handle = (
  endpoint: Endpoint<ApiParts>,
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<unknown>;

function addEndpoint(
  scope: FastifyInstance,
  { prefix, tag }: Api<ApiParts>,
  endpoint: Endpoint<ApiParts>,
  handle: Handle,
): void {
  const { url, body, summary, responses: response } = endpoint;
  const shown = tag === undefined ? { hide: true } : { tags: [tag], summary };
  const schema = { ...shown, body, response };
  const validatorCompiler = () => createBodyCheck(body);
  scope.post(url.slice(prefix.length), { schema, validatorCompiler }, (request, reply) =>
    handle(endpoint, request, reply),
  );
}

/** Prepares a scope for the routes of one API. */
function prepareScope(
  scope: FastifyInstance,
  parts: InferenceParts,
  { errors, idHeader, anyContentType = false }: Api<ApiParts>,
) {
  const { fixedHeaders, allowedOrigins } = parts;
  const corsHeaders = allowOrigins(scope, allowedOrigins);
  const rules: BodyRules = {
    maxBytes: parts.maxBodyBytes,
    anyContentType,
    maxValues: parts.maxBodyValues,
    large: parts.largeBodies,
  };
  const bodies = applyErrorFormat(scope, errors, rules, (...refused) =>
    recordRefusal(parts.accounting, ...refused),
  );
  parts.authenticator.requireScope(scope, 'inference');
  scope.addHook('onSend', (request, reply, _payload, done) => {
    if (idHeader !== undefined) reply.header(idHeader, request.id);
    reply.header('openai-processing-ms', Math.round(reply.elapsedTime));
    done();
  });
  function headersOf({ id, headers: { origin } }: FastifyRequest): Readonly<HeaderList> {
    const own = idHeader === undefined ? fixedHeaders : [...fixedHeaders, idHeader, id];
    return allowedOrigins.length === 0 ? own : [...own, ...corsHeaders(origin)];
  }
  return { bodies, headersOf };
}

/** Returns the handler of the scope's endpoints, and a function that sends events. */
function openScope(
  scope: FastifyInstance,
  parts: InferenceParts,
  api: Api<ApiParts>,
  streams: EventStreams,
): { handle: Handle; follow: SendStream } {
  const { catalog, responses } = parts;
  const { bodies, headersOf } = prepareScope(scope, parts, api);

  function serve(
    request: FastifyRequest,
    reply: FastifyReply,
    { task, format, addedBytes = 0 }: Generation,
  ): Promise<void> {
    reply.hijack();
    const principal = principalOf(request);
    const delivery = new HttpDelivery(reply.raw, streams);
    const line = holdLine(request);
    const inferenceRequest = {
      ...toIdentity(request, reply, principal),
      headers: request.headers,
      bodyBytes: bodies.lengthOf(request) + addedBytes,
      delivery,
      fixedHeaders: headersOf(request),
      onServed: (served: ServedRequest) => line.add(toLineMembers(served)),
    };
    return whileAllowed(parts.running, principal, delivery, () =>
      parts.serve(inferenceRequest, withConversation(task, inferenceRequest), format),
    ).finally(line.release);
  }

  async function count(request: FastifyRequest, reply: FastifyReply, asked: PromptCount) {
    const caller = toCaller(principalOf(request));
    const signal = new ClientDisconnect(reply.raw);
    try {
      return asked.toAnswer(await parts.countPrompt(caller, asked.counted, signal));
    } catch (error) {
      throw withOwnNames(error, asked.names);
    }
  }

  const follow: SendStream = (request, reply, send, own = []) => {
    reply.hijack();
    const headers: HeaderList = ['x-request-id', request.id, ...headersOf(request), ...own];
    mergeHeaders(headers, eventStreamHeaders);
    const delivery = new HttpDelivery(reply.raw, streams);
    return whileAllowed(parts.running, principalOf(request), delivery, () =>
      sendFollowed(request, delivery, delivery.openStream(headers), send),
    );
  };

  async function respond(request: FastifyRequest, reply: FastifyReply, translation: Translation) {
    if ('task' in translation) return serve(request, reply, translation);
    if ('counted' in translation) return count(request, reply, translation);
    const { headers } = translation;
    if ('follow' in translation) return follow(request, reply, translation.follow, headers);
    reply.headers(toHeaderObject(headers ?? []));
    return translation.answer;
  }

  const handle: Handle = async (endpoint, request, reply) => {
    const caller = toCaller(principalOf(request));
    const { accountId } = caller;
    const origin = { id: request.id, accountId, caller, catalog, responses };
    return respond(request, reply, await endpoint.translate(request.body, origin));
  };
  return { handle, follow };
}

const toLineMembers = ({ asked, served, backend, usage }: ServedRequest): LineMembers => ({
  model: asked,
  ...(served !== asked && { served_model: served }),
  backend,
  prompt_tokens: usage?.prompt_tokens,
  completion_tokens: usage?.completion_tokens,
});

/** Ends the response if its caller loses the right to it. */
async function whileAllowed(
  running: RunningRequests,
  principal: Principal,
  { signal }: HttpDelivery,
  respond: () => Promise<void>,
): Promise<void> {
  const request = running.add(principal, () => signal.abort(rightEnded()));
  try {
    await respond();
  } finally {
    running.remove(request);
  }
}

/** Sends the events of a response that runs elsewhere. */
async function sendFollowed(
  { id, log }: FastifyRequest,
  delivery: HttpDelivery,
  stream: EventStream,
  follow: Follow,
): Promise<void> {
  try {
    await follow((events) => stream.pass(events), delivery.signal);
    if (delivery.signal.aborted) delivery.fail(401, [], null);
    else stream.end();
  } catch (error) {
    log.error({ err: error, request_id: id }, 'stream failed');
    delivery.fail(500, [], null);
  }
}

function recordRefusal(
  accounting: RequestAccounting,
  ...[request, reply, rendered]: Parameters<OnRefused>
): void {
  const endpoint = findEndpoint(request.routeOptions.url);
  const principal = findPrincipal(request);
  if (endpoint === undefined || principal === null) return;
  const identity = toIdentity(request, reply, principal);
  const { complete, destroyed } = request.raw;
  const code = destroyed && !complete ? 'incomplete_request' : codeOf(rendered);
  accounting.refused(identity, endpoint.operation, modelIn(request.body), code);
}

const toIdentity = (
  { id }: FastifyRequest,
  reply: FastifyReply,
  principal: Principal,
): RequestIdentity => ({
  id,
  caller: toCaller(principal),
  begunMs: performance.now() - reply.elapsedTime,
});

/**
 * Schemas are compiled by the first request that needs them: to compile all of them after the start
 * took 0.3 s and 30 MB of memory. Bodies that a thread parsed were checked there. Fastify's copies
 * of schemas lack the names of unlisted members.
 */
function createBodyCheck(schema: object) {
  const check = createLazyCheck(schema);
  return (body: unknown) => {
    if ((body as WithMemberTexts | null)?.[memberTexts] !== undefined) return true;
    const errors = check(body);
    return errors.length === 0 ? true : { error: errors };
  };
}
