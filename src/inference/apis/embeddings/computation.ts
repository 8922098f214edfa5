// What an endpoint for embeddings computes, whichever API it belongs to.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { invalidRequest } from '#inference/errors.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import type { Computation } from '#inference/serving/response-format.ts';
import { type Usage, WrittenResponse } from '#inference/wire/response.ts';

interface EmbeddedTexts {
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

/**
 * Only a model trained for it keeps the meaning in the first dimensions. The operator says so by `min_dimensions`.
 * Throws InferenceError.
 */
function cutVectors(
  vectors: readonly Float32Array[],
  dimensions: number | null,
  { id, minDimensions }: CatalogEntry,
): readonly Float32Array[] {
  const full = vectors[0]?.length ?? 0;
  if (dimensions === null || dimensions === full) return vectors;
  const min = minDimensions ?? full;
  if (dimensions >= min && dimensions < full)
    return vectors.map((vector) => toUnitLength(vector.subarray(0, dimensions)));
  const allowed = min === full ? `${full}` : `${min} to ${full}`;
  throw invalidRequest(
    'invalid_value',
    'dimensions',
    `dimensions is ${dimensions}; ${id} has ${allowed}.`,
  );
}

function toUnitLength(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector);
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** Numbers written before other requests may run: some 4 ms as floats. */
const numbersPerTurn = 16_384;

/** Written in pieces, because thousands of vectors as JSON take the event loop for a good part of a second. */
export async function writeEmbeddings(
  vectors: readonly Float32Array[],
  { model, usage, isBase64 }: { model: string; usage: Usage; isBase64: boolean },
): Promise<WrittenResponse> {
  const pieces: Buffer[] = [Buffer.from('{"object":"list","data":[')];
  let numbers = 0;
  for (const [index, vector] of vectors.entries()) {
    const embedding = isBase64 ? toBase64(vector) : Array.from(vector);
    const text = JSON.stringify({ object: 'embedding', index, embedding });
    pieces.push(Buffer.from(index === 0 ? text : `,${text}`));
    numbers += vector.length;
    if (numbers < numbersPerTurn) continue;
    numbers = 0;
    await yieldToEventLoop();
  }
  pieces.push(Buffer.from(`],"model":${JSON.stringify(model)},"usage":`));
  return new WrittenResponse(usage, Buffer.concat(pieces), Buffer.from('}'));
}

/** Little-endian, as all processors that Millrace runs on are. */
const toBase64 = ({ buffer, byteOffset, byteLength }: Float32Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64');
