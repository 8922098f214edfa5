// Whether a model fits, and which models are known: the endpoints that help to choose before a deployment exists. No
// deployment is called "-".

import { isAbsolute } from 'node:path';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ok } from '#cloud/schema.ts';
import {
  deploymentEngines,
  FitsQuery,
  FitsView,
  KnownModelView,
} from '#deployments/ground/schema.ts';
import { OneOf, Type } from '#lib/schema/schema-builder.ts';
import type { Fits } from './fits.ts';
import { knownModels } from './known-models.ts';

const tags = ['Deployments'];

export function fitsRoutes(
  scope: FastifyInstance,
  fits: Fits,
  requireOwner: (request: FastifyRequest) => unknown,
): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  app.get(
    '/-/fits',
    {
      schema: {
        tags,
        summary: 'Compute whether a model fits',
        querystring: FitsQuery,
        response: ok(FitsView),
      },
    },
    async (request) => {
      const { model, engine = 'vllm', source = null, target, context } = request.query;
      // Others must not learn which files the server has.
      if (isAbsolute(source ?? model)) requireOwner(request);
      const args = context === undefined ? [] : ['--max-model-len', context];
      const wanted = { model, engine, source, args, target: Number(target ?? 8) };
      return { data: await fits.estimate(wanted) };
    },
  );
  app.get(
    '/-/engine',
    {
      schema: {
        tags,
        summary: "Find the engine that suits the server's computer",
        response: ok(Type.Object({ engine: OneOf(deploymentEngines) })),
      },
    },
    async () => ({ data: { engine: await fits.findOwnEngine() } }),
  );
  app.get(
    '/-/models',
    {
      schema: { tags, summary: 'List known models', response: ok(Type.Array(KnownModelView)) },
    },
    () => ({
      data: knownModels.map(({ repository, billions, contextWindow, licence }) => ({
        source: repository,
        parameters_billions: billions,
        context_window: contextWindow,
        licence,
      })),
    }),
  );
}
