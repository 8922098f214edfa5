// POST /v1/embeddings.

import { toComputedFormat, toReadTask } from '#inference/apis/computed-format.ts';
import { defineEndpoint } from '#inference/apis/endpoint.ts';
import { invalidRequest } from '#inference/errors.ts';
import { toEmbedding, writeEmbeddings } from './computation.ts';
import { EmbeddingsRequest, embeddingsResponses } from './schema.ts';

export const embeddingsEndpoint = defineEndpoint({
  url: '/v1/embeddings',
  operation: 'embeddings',
  summary: 'Embed texts',
  text: {
    description:
      'Turns texts or lists of token ids into vectors, as OpenAI’s embeddings do, in the order they were sent. Each vector ' +
      'of a model on this machine has length one. `encoding_format: base64` returns little-endian 32-bit floats. ' +
      '`dimensions` cuts the vectors of models that were made for it.',
    body: { model: 'nomic-embed-text', input: ['A mill wheel', 'A water channel'] },
    response: {
      object: 'list',
      data: [
        { object: 'embedding', index: 0, embedding: [0.6, 0.8] },
        { object: 'embedding', index: 1, embedding: [0.8, 0.6] },
      ],
      model: 'nomic-embed-text',
      usage: { prompt_tokens: 10, total_tokens: 10 },
    },
  },
  body: EmbeddingsRequest,
  responses: embeddingsResponses,
  translate({ model, input, dimensions, encoding_format, priority }) {
    const inputs = toInputs(input);
    const isBase64 = encoding_format === 'base64';
    const computation = toEmbedding(inputs, dimensions ?? null, ({ vectors, served, usage }) =>
      writeEmbeddings(vectors, { model: served.id, usage, isBase64 }),
    );
    const format = toComputedFormat('embeddings', computation);
    return { task: toReadTask(model, inputs, priority), format };
  },
});

/** Throws InferenceError if a text is empty. */
function toInputs(input: EmbeddingsRequest['input']): readonly (string | readonly number[])[] {
  const isOne = typeof input === 'string' || typeof input[0] === 'number';
  const inputs = isOne ? [input as string | number[]] : (input as string[] | number[][]);
  const empty = inputs.findIndex((one) => one.length === 0);
  if (empty < 0) return inputs;
  const param = isOne ? 'input' : `input[${empty}]`;
  throw invalidRequest('invalid_value', param, `${param} is empty. Leave out empty texts.`);
}
