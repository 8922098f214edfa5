// Ollama's lists: the models there are, what one of them can do, and which ones are ready.

import { createHash } from 'node:crypto';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import type { ServedModels } from '#inference/backends/backend.ts';
import { modelNotFound } from '#inference/errors.ts';
import type { Catalog, CatalogEntry } from '#inference/models/catalog.ts';
import type { ModelKind } from '#inference/pooling.ts';
import { Maybe, open, Type } from '#lib/schema/schema-builder.ts';
import { toModelId } from './translate.ts';

/** The version of Ollama's API that clients find here. Some refuse older ones. */
const version = '0.12.6';

export function ollamaRoutes(
  scope: FastifyInstance,
  catalog: Catalog,
  models: ServedModels,
  kindOf: (entry: CatalogEntry) => ModelKind,
): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  // Ollama's own reference describes them.
  const hidden = { schema: { hide: true } };
  const get = (path: string, respond: () => object) => app.get(path, hidden, async () => respond());

  get('/version', () => ({ version }));
  get('/tags', () => ({ models: models.listed().map(toTag) }));
  get('/ps', () => ({
    models: models
      .listed()
      .filter(({ id }) => models.forModel(id).some(({ kind }) => kind !== 'stand-in'))
      .map((entry) => ({ ...toTag(entry), size_vram: 0, expires_at: never })),
  }));
  app.post(
    '/show',
    {
      schema: {
        hide: true,
        body: Type.Object({ model: Maybe(Type.String()), name: Maybe(Type.String()) }, open),
      },
    },
    async ({ body }) => {
      const id = toModelId(body.model ?? body.name ?? '');
      const entry = catalog.find(id);
      if (entry === undefined) throw modelNotFound(id);
      return toDescription(entry, kindOf(entry));
    },
  );
}

/** Models here are not unloaded by a timer that a client could see. */
const never = '9999-12-31T23:59:59Z';

const toTag = (entry: CatalogEntry) => ({
  name: entry.id,
  model: entry.id,
  modified_at: new Date(entry.created * 1000).toISOString(),
  size: 0,
  digest: createHash('sha256').update(entry.id).digest('hex'),
  details: toDetails(entry),
});

const toDetails = ({ ownedBy }: CatalogEntry) => ({
  parent_model: '',
  format: 'gguf',
  family: ownedBy,
  families: [ownedBy],
  parameter_size: '',
  quantization_level: '',
});

const toDescription = (entry: CatalogEntry, kind: ModelKind) => ({
  modelfile: '',
  parameters: '',
  template: '',
  details: toDetails(entry),
  model_info: {
    'general.architecture': 'millrace',
    'millrace.context_length': entry.contextWindow,
  },
  capabilities: toCapabilities(entry, kind),
  modified_at: new Date(entry.created * 1000).toISOString(),
});

/** Ollama has no word for a model that ranks. */
function toCapabilities({ input }: CatalogEntry, kind: ModelKind): string[] {
  if (kind !== 'chat') return kind === 'embedding' ? ['embedding'] : [];
  return ['completion', 'tools', ...(input.includes('image') ? ['vision'] : [])];
}
