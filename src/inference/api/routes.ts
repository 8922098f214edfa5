// The routes of the inference API.

import type {} from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Authenticator, findPrincipal, principalOf } from '#accounts/authenticate.ts';
import type { Principal } from '#accounts/principal.ts';
import type { BodyRules, LargeBodies } from '#http/body/bodies.ts';
import { memberTexts, type WithMemberTexts } from '#http/body/json.ts';
import { allowOrigins } from '#http/cors.ts';
import { applyErrorFormat, type OnRefused } from '#http/error-format.ts';
import type { HeaderList } from '#http/header-list.ts';
import type { Task } from '#inference/engine.ts';
import { codeOf, inferenceErrorFormat, modelNotFound } from '#inference/errors.ts';
import { type Catalog, type CatalogEntry, toModel } from '#inference/models/catalog.ts';
import {
  type InferenceRequest,
  kinds,
  modelIn,
  type RequestIdentity,
  toCaller,
} from '#inference/request.ts';
import { ChatRequest, CompletionRequest, Model, ModelList } from '#inference/schema.ts';
import type { RequestAccounting } from '#inference/serving/request-accounting.ts';
import type { Serve } from '#inference/serving/serve.ts';
import { Type } from '#lib/schema/schema-builder.ts';
import { createValidator } from '#lib/schema/validator.ts';
import { checkTask } from './check.ts';
import { chatResponses, completionResponses } from './response-schemas.ts';

export interface InferenceParts {
  authenticator: Authenticator;
  catalog: Catalog;
  serve: Serve;
  accounting: RequestAccounting;
  maxBodyBytes: number;
  maxBodyValues: number;
  largeBodies: LargeBodies;
  /** Headers of every response. */
  fixedHeaders: Readonly<HeaderList>;
  /** Origins of other sites whose pages may call the API from a browser; `*` for any. */
  allowedOrigins: readonly string[];
}

const tags = ['Inference'];

const chatRoute = {
  schema: { tags, summary: 'Answer a conversation', body: ChatRequest, response: chatResponses },
  validatorCompiler: compileOnce(ChatRequest),
};

const completionRoute = {
  schema: {
    tags,
    summary: 'Continue a text',
    body: CompletionRequest,
    response: completionResponses,
  },
  validatorCompiler: compileOnce(CompletionRequest),
};

export function inferenceRoutes(scope: FastifyInstance, parts: InferenceParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { catalog, fixedHeaders, allowedOrigins } = parts;
  const corsHeaders = allowOrigins(scope, allowedOrigins);
  const rules: BodyRules = {
    maxBytes: parts.maxBodyBytes,
    anyContentType: false,
    maxValues: parts.maxBodyValues,
    large: parts.largeBodies,
  };
  const bodies = applyErrorFormat(scope, inferenceErrorFormat, rules, recordRefusal);
  parts.authenticator.requireScope(scope, 'inference');
  scope.addHook('onSend', (_request, reply, _payload, done) => {
    reply.header('openai-processing-ms', Math.round(reply.elapsedTime));
    done();
  });
  modelRoutes(scope, catalog);
  app.post('/chat/completions', chatRoute, (request, reply) =>
    serve(request, reply, { kind: 'chat', body: request.body }),
  );
  app.post('/completions', completionRoute, (request, reply) =>
    serve(request, reply, { kind: 'completion', body: request.body }),
  );

  function serve(request: FastifyRequest, reply: FastifyReply, given: Task): Promise<void> {
    const task = checkTask(given);
    reply.hijack();
    return parts.serve(toInferenceRequest(request, reply), task);
  }

  const toInferenceRequest = (request: FastifyRequest, reply: FastifyReply): InferenceRequest => ({
    ...toIdentity(request, reply, principalOf(request)),
    headers: request.headers,
    bodyBytes: bodies.lengthOf(request),
    response: reply.raw,
    fixedHeaders:
      allowedOrigins.length === 0
        ? fixedHeaders
        : [...fixedHeaders, ...corsHeaders(request.headers.origin)],
  });

  function recordRefusal(...[request, reply, rendered]: Parameters<OnRefused>): void {
    const kind = kinds.get(request.routeOptions.url);
    const principal = findPrincipal(request);
    if (kind === undefined || principal === null) return;
    const identity = toIdentity(request, reply, principal);
    const { complete, destroyed } = request.raw;
    const code = destroyed && !complete ? 'incomplete_request' : codeOf(rendered);
    parts.accounting.refused(identity, kind, modelIn(request.body), code);
  }
}

function modelRoutes(scope: FastifyInstance, catalog: Catalog): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  // The list changes only with the configuration, so it is rendered once for each. A string rather than bytes,
  // because Node sends it in one write together with the headers.
  let listed: readonly CatalogEntry[] = [];
  let list = '';
  app.get(
    '/models',
    { schema: { tags, summary: 'List models', response: doc(ModelList) } },
    (_, reply) => {
      if (listed !== catalog.list()) {
        listed = catalog.list();
        list = JSON.stringify({ object: 'list', data: listed.map(toModel) });
      }
      reply.type('application/json; charset=utf-8').send(list);
    },
  );
  app.get(
    '/models/:model',
    {
      schema: {
        tags,
        summary: 'Get one model',
        params: Type.Object({ model: Type.String() }),
        response: doc(Model),
      },
    },
    async (request) => toModel(getEntry(request.params.model)),
  );
  // Ids may have slashes, which clients write as they are or as %2F.
  app.get(
    '/models/*',
    { schema: { hide: true, params: Type.Object({ '*': Type.String() }) } },
    async (request) => toModel(getEntry(request.params['*'])),
  );

  function getEntry(model: string): CatalogEntry {
    const entry = catalog.find(model);
    if (entry === undefined) throw modelNotFound(model);
    return entry;
  }
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

/** Compiled before the first request, which would wait 0.2 s for it. Bodies that a thread parsed were checked there. */
function compileOnce(schema: object) {
  const validate = createValidator(schema);
  const check = (body: unknown) => {
    if ((body as WithMemberTexts | null)?.[memberTexts] !== undefined) return true;
    return validate(body) ? true : { error: validate.errors ?? [] };
  };
  return () => check;
}

/** Documents a response in /openapi.json only: a schema used for serialization would drop members it does not know. */
const doc = (schema: object) => ({ 200: { content: { 'application/json': { schema } } } });
