// Wire types of the weights endpoints. Times are ISO 8601, sizes are bytes.

import { closed, Maybe, OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';

const Text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const Nullable = Type.Union([Type.String(), Type.Null()]);

export const NewPull = Type.Object(
  {
    model: Maybe(Text(100)),
    repo: Maybe(Text(500)),
    file: Maybe(Text(300)),
    quant: Maybe(Text(32)),
    as: Maybe(Text(100)),
  },
  closed,
);

export const CancelQuery = Type.Object(
  { keep: Type.Optional(Type.String({ pattern: '^(true|false)$' })) },
  closed,
);

export const Pull = Type.Object({
  id: Type.String(),
  state: OneOf(['queued', 'running', 'done', 'failed', 'cancelled']),
  /** The model that the weights will serve. */
  model: Nullable,
  /** Name on disk. */
  name: Type.String(),
  repo: Type.String(),
  files: Type.Array(Type.String()),
  bytes_total: Type.Integer(),
  bytes_done: Type.Integer(),
  error: Nullable,
  created_at: Type.String(),
  updated_at: Type.String(),
});

export const StoredWeights = Type.Object({
  name: Type.String(),
  repo: Type.String(),
  quant: Nullable,
  files: Type.Array(Type.String()),
  bytes: Type.Integer(),
  bytes_on_disk: Type.Integer(),
  state: OneOf(['whole', 'partial']),
  /** Ids of the models that these weights serve. */
  models: Type.Array(Type.String()),
  /** Names of the deployments that use them. */
  deployments: Type.Array(Type.String()),
});

export const ModelWeights = Type.Object({
  id: Type.String(),
  /** Patterns of other names for it. */
  aliases: Type.Array(Type.String()),
  owned_by: Type.String(),
  /** False: it answers by its id, but `GET /v1/models` leaves it out. */
  listed: Type.Boolean(),
  context_window: Type.Integer(),
  /** US dollars per million tokens. */
  price: Type.Object({ input: Type.Number(), output: Type.Number() }),
  input: Type.Array(OneOf(['text', 'image'])),
  /** What the model was made for. */
  kind: OneOf(['chat', 'embedding', 'rerank']),
  gguf_repo: Nullable,
  safetensors_repo: Nullable,
  /** Name of the weights on disk that serve the model. */
  weights: Nullable,
});

export const WeightsOverview = Type.Object({
  data: Type.Array(StoredWeights),
  models: Type.Array(ModelWeights),
  pulls: Type.Array(Pull),
});

export type Pull = Static<typeof Pull>;
export type StoredWeights = Static<typeof StoredWeights>;
export type ModelWeights = Static<typeof ModelWeights>;
export type WeightsOverview = Static<typeof WeightsOverview>;
