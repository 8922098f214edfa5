// The API reference of reranking.

import type { EndpointText } from '#inference/apis/endpoint.ts';
import { id } from '#inference/apis/example-values.ts';

export const rerankText: EndpointText = {
  description:
    'Scores each document from 0 to 1 and returns them sorted, in the form that Jina and Cohere share. The same ' +
    'endpoint is at `/rerank`.',
  body: {
    model: 'bge-reranker-v2-m3',
    query: 'What carries water?',
    documents: ['A mill wheel', { text: 'A water channel' }],
    top_n: 1,
    return_documents: true,
  },
  response: {
    id,
    model: 'bge-reranker-v2-m3',
    results: [{ index: 1, relevance_score: 0.97, document: { text: 'A water channel' } }],
    usage: { prompt_tokens: 24, total_tokens: 24 },
  },
};
