// POST /v1/rerank, and the same at /rerank, where some clients look for it.

import { toComputedFormat, toReadTask } from '#inference/apis/computed-format.ts';
import { defineEndpoint } from '#inference/apis/endpoint.ts';
import { id } from '#inference/apis/example-values.ts';
import { invalidRequest } from '#inference/errors.ts';
import { RerankRequest, rerankResponses } from './schema.ts';

export const rerankEndpoint = defineEndpoint({
  url: '/v1/rerank',
  operation: 'rerank',
  summary: 'Rank documents by their relevance to a query',
  text: {
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
  },
  body: RerankRequest,
  responses: rerankResponses,
  translate(body, { id }) {
    const { model, query, priority } = body;
    const documents = toTexts(body);
    const format = toComputedFormat('rerank', {
      ability: 'rank documents',
      modelKind: 'rerank',
      // The query is read again with each document.
      repeatedBytes: Buffer.byteLength(query) * (documents.length - 1),
      start: ({ rerank }) =>
        rerank &&
        (async (call) => {
          const task = { kind: 'rerank', query, documents } as const;
          const { scores, promptTokens } = await rerank(task, call);
          return {
            promptTokens,
            toBody: (served, { prompt_tokens, total_tokens }) => ({
              id,
              model: served.id,
              results: toResults(scores, documents, body),
              usage: { prompt_tokens, total_tokens },
            }),
          };
        }),
    });
    const read = documents.map((document) => `${query}\n${document}`);
    return { task: toReadTask(model, read, priority), format };
  },
});

export const shortRerankEndpoint = { ...rerankEndpoint, url: '/rerank' };

/** Throws InferenceError if a document is empty. */
function toTexts({ documents }: RerankRequest): string[] {
  const texts = documents.map((one) => (typeof one === 'string' ? one : one.text));
  const empty = texts.indexOf('');
  if (empty < 0) return texts;
  const param = `documents[${empty}]`;
  throw invalidRequest('invalid_value', param, `${param} is empty. Leave out empty documents.`);
}

function toResults(
  scores: readonly number[],
  documents: readonly string[],
  { top_n, return_documents }: RerankRequest,
) {
  const results = scores.map((relevance_score, index) => ({
    index,
    relevance_score,
    ...(return_documents === true && { document: { text: documents[index] ?? '' } }),
  }));
  // Sorting is stable: equally relevant documents keep their order.
  results.sort((a, b) => b.relevance_score - a.relevance_score);
  return results.slice(0, top_n ?? results.length);
}
