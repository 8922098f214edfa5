// The inference API, route by route.

import type {} from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import type { Authenticator } from '../accounts/authenticate.ts';
import { applyDialect } from '../lib/dialect.ts';
import { Type } from '../lib/type.ts';
import { type Catalog, type CatalogEntry, toModel } from './catalog.ts';
import { checkChat, checkCompletion } from './check.ts';
import { inferenceDialect, modelNotFound } from './errors.ts';
import { ChatRequest, CompletionRequest, Model, ModelList } from './schema.ts';
import type { Serve } from './serve.ts';

export interface InferenceParts {
  authenticator: Authenticator;
  catalog: Catalog;
  serve: Serve;
  maxBodyBytes: number;
}

export function inferenceRoutes(scope: FastifyInstance, parts: InferenceParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { catalog, maxBodyBytes } = parts;
  applyDialect(scope, inferenceDialect, { maxBytes: maxBodyBytes, anyContentType: false });
  parts.authenticator.requireScope(scope, 'inference');
  scope.addHook('onSend', (_request, reply, _payload, done) => {
    reply.header('openai-processing-ms', Math.round(reply.elapsedTime));
    done();
  });
  const tags = ['Inference'];

  // The list changes only with the configuration, so it is made once for each. A string and not bytes: Node
  // sends it in one write together with the headers.
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

  app.post(
    '/chat/completions',
    { schema: { tags, summary: 'Answer a conversation', body: ChatRequest } },
    (request, reply) => {
      checkChat(request.body);
      return parts.serve(request, reply, { kind: 'chat', body: request.body });
    },
  );
  app.post(
    '/completions',
    { schema: { tags, summary: 'Continue a text', body: CompletionRequest } },
    (request, reply) => {
      checkCompletion(request.body);
      return parts.serve(request, reply, { kind: 'completion', body: request.body });
    },
  );

  function getEntry(model: string): CatalogEntry {
    const entry = catalog.find(model);
    if (entry === undefined) throw modelNotFound(model);
    return entry;
  }
}

/** For /openapi.json only: a response schema that serialises would drop members it doesn't know. */
const doc = (schema: object) => ({ 200: { content: { 'application/json': { schema } } } });
