// The API reference of embeddings.

import type { EndpointText } from '#inference/apis/endpoint.ts';

export const embeddingsText: EndpointText = {
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
};
