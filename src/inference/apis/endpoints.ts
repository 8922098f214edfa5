// The endpoints that generate. Routes, the thread that checks large bodies, refused usage rows and batches all read
// this list.

import { chatEndpoint } from '#inference/apis/chat/endpoint.ts';
import { completionEndpoint } from '#inference/apis/completions/endpoint.ts';
import { embeddingsEndpoint } from '#inference/apis/embeddings/endpoint.ts';
import { countTokensEndpoint, messagesEndpoint } from '#inference/apis/messages/endpoints.ts';
import {
  ollamaChatEndpoint,
  ollamaEmbedEndpoint,
  ollamaGenerateEndpoint,
} from '#inference/apis/ollama/endpoints.ts';
import { rerankEndpoint, shortRerankEndpoint } from '#inference/apis/rerank/endpoint.ts';
import {
  compactEndpoint,
  inputTokensEndpoint,
  responsesEndpoint,
} from '#inference/apis/responses/endpoint.ts';
import { tokenEndpoints } from '#inference/apis/tokenize/endpoint.ts';
import type { Endpoint } from './endpoint.ts';

export const endpoints: readonly Endpoint[] = [
  chatEndpoint,
  completionEndpoint,
  ollamaChatEndpoint,
  ollamaEmbedEndpoint,
  ollamaGenerateEndpoint,
  messagesEndpoint,
  countTokensEndpoint,
  embeddingsEndpoint,
  rerankEndpoint,
  shortRerankEndpoint,
  ...tokenEndpoints,
  responsesEndpoint,
  compactEndpoint,
  inputTokensEndpoint,
];

const byUrl = new Map(endpoints.map((endpoint) => [endpoint.url, endpoint]));

export const findEndpoint = (url: string | undefined): Endpoint | undefined => byUrl.get(url ?? '');
