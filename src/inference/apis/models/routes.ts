// GET /v1/models and GET /v1/models/{id}.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { inJson } from '#inference/apis/response-schemas.ts';
import type { ServedModels } from '#inference/backends/backend.ts';
import { modelNotFound } from '#inference/errors.ts';
import { type Catalog, type CatalogEntry, toModel } from '#inference/models/catalog.ts';
import { Model, ModelList } from '#inference/schema.ts';
import { Type } from '#lib/schema/schema-builder.ts';

const tags = ['Inference'];

export function modelRoutes(scope: FastifyInstance, catalog: Catalog, models: ServedModels): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  // The list changes seldom, so it is rendered once for each change. A string rather than bytes,
  // because Node sends it in one write together with the headers.
  let listed: readonly CatalogEntry[] = [];
  let list = '';
  app.get(
    '/models',
    { schema: { tags, summary: 'List models', response: inJson(ModelList) } },
    (request, reply) => {
      if (listed !== models.listed()) {
        listed = models.listed();
        list = JSON.stringify({ object: 'list', data: listed.map(toModel) });
      }
      const isCodex = 'client_version' in (request.query as object);
      reply.type('application/json; charset=utf-8').send(isCodex ? withModels(list) : list);
    },
  );
  app.get(
    '/models/:model',
    {
      schema: {
        tags,
        summary: 'Get one model',
        params: Type.Object({ model: Type.String() }),
        response: inJson(Model),
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

/**
 * Codex with a command for its key asks for the list and fails without `models`. Its entries would replace the
 * instructions that Codex brings for unknown models, so there are none.
 */
const withModels = (list: string) => `${list.slice(0, -1)},"models":[]}`;
