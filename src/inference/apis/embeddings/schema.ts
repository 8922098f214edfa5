// Requests and responses of the embeddings API.

import { inJson } from '#inference/apis/response-schemas.ts';
import { Maybe, OneOf, open, type Static, Type } from '#lib/schema/schema-builder.ts';

const maxInputs = 2048;
const tokenIds = Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1 });

export const EmbeddingsRequest = Type.Object(
  {
    model: Type.String(),
    input: Type.Union([
      Type.String(),
      Type.Array(Type.String(), { minItems: 1, maxItems: maxInputs }),
      tokenIds,
      Type.Array(tokenIds, { minItems: 1, maxItems: maxInputs }),
    ]),
    encoding_format: Maybe(OneOf(['float', 'base64'])),
    dimensions: Maybe(Type.Integer({ minimum: 1 })),
    user: Maybe(Type.String()),
    priority: Maybe(Type.Integer()),
  },
  open,
);
export type EmbeddingsRequest = Static<typeof EmbeddingsRequest>;

const Embedding = Type.Object({
  object: OneOf(['embedding']),
  index: Type.Integer(),
  embedding: Type.Union([
    Type.Array(Type.Number()),
    Type.String({ description: 'Little-endian 32-bit floats in base64.' }),
  ]),
});

const Embeddings = Type.Object({
  object: OneOf(['list']),
  data: Type.Array(Embedding),
  model: Type.String(),
  usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }, open),
});

export const embeddingsResponses = inJson(Embeddings);
