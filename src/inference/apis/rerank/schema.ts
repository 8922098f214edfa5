// Requests and responses of the rerank API, in the form that Jina and Cohere share.

import { inJson } from '#inference/apis/response-schemas.ts';
import { Maybe, open, type Static, Type } from '#lib/schema/schema-builder.ts';

const Document = Type.Object({ text: Type.String() }, open);

export const RerankRequest = Type.Object(
  {
    model: Type.String(),
    /** Read again with each document, so that a long one takes a multiple of the body's memory. */
    query: Type.String({ minLength: 1, maxLength: 65_536 }),
    documents: Type.Array(Type.Union([Type.String(), Document]), { minItems: 1, maxItems: 2048 }),
    /** Default: all documents. */
    top_n: Maybe(Type.Integer({ minimum: 1 })),
    /** Default: false. */
    return_documents: Maybe(Type.Boolean()),
    priority: Maybe(Type.Integer()),
  },
  open,
);
export type RerankRequest = Static<typeof RerankRequest>;

const Result = Type.Object({
  index: Type.Integer(),
  relevance_score: Type.Number({ minimum: 0, maximum: 1 }),
  document: Type.Optional(Type.Object({ text: Type.String() })),
});

const Ranking = Type.Object({
  id: Type.String(),
  model: Type.String(),
  results: Type.Array(Result),
  usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }, open),
});

export const rerankResponses = inJson(Ranking);
