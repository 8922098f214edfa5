// OpenAI's API, with the endpoints that vLLM has added to it. Each endpoint has a folder.

import { chatEndpoint } from '#inference/apis/chat/endpoint.ts';
import { completionEndpoint } from '#inference/apis/completions/endpoint.ts';
import { embeddingsEndpoint } from '#inference/apis/embeddings/endpoint.ts';
import { rerankEndpoint, shortRerankEndpoint } from '#inference/apis/rerank/endpoint.ts';
import {
  compactEndpoint,
  inputTokensEndpoint,
  responsesEndpoint,
} from '#inference/apis/responses/endpoint.ts';
import type { WithResponses } from '#inference/apis/responses/parts.ts';
import { shortTokenEndpoints, tokenEndpoints } from '#inference/apis/tokenize/endpoint.ts';
import { inferenceErrorFormat as errors } from '#inference/errors.ts';
import type { Api } from './endpoint.ts';

export const openAiApi: Api<WithResponses> = {
  prefix: '/v1',
  tag: 'Inference',
  errors,
  endpoints: [
    chatEndpoint,
    completionEndpoint,
    embeddingsEndpoint,
    rerankEndpoint,
    ...tokenEndpoints,
    responsesEndpoint,
    compactEndpoint,
    inputTokensEndpoint,
  ],
};

/** Endpoints where vLLM has them. The reference describes the same endpoints under /v1. */
export const rootApis: readonly Api[] = [shortRerankEndpoint, ...shortTokenEndpoints].map(
  (endpoint) => ({ prefix: endpoint.url, errors, endpoints: [endpoint] }),
);
