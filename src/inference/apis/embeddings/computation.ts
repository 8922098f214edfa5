// What an endpoint for embeddings computes, whichever API it belongs to.

import type { Computation } from '#inference/apis/computation.ts';
import type { Usage } from '#inference/engine.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import { cutVectors } from './vectors.ts';

export interface EmbeddedTexts {
  readonly vectors: readonly Float32Array[];
  readonly served: CatalogEntry;
  readonly usage: Usage;
}

/** `dimensions` is the length of the vectors; null for the model's own. `toBody` writes the response. */
export const toEmbedding = (
  inputs: readonly (string | readonly number[])[],
  dimensions: number | null,
  toBody: (embedded: EmbeddedTexts) => unknown,
): Computation => ({
  ability: 'embed texts',
  modelKind: 'embedding',
  repeatedBytes: 0,
  start: ({ embed }) =>
    embed &&
    (async (call) => {
      const { vectors, promptTokens } = await embed({ kind: 'embed', inputs }, call);
      return {
        promptTokens,
        toBody: (served, usage) =>
          toBody({ vectors: cutVectors(vectors, dimensions, served), served, usage }),
      };
    }),
});
