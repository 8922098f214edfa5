// The URL prefixes of the inference APIs, and the format of their errors. Routes, the responses to requests that never
// reach a route, and the shutdown all read this list.

import type { ErrorFormat } from '#http/error-format.ts';
import { messagesErrorFormat } from '#inference/apis/messages/errors.ts';
import { ollamaErrorFormat } from '#inference/apis/ollama/errors.ts';
import { inferenceErrorFormat } from '#inference/errors.ts';

export interface Scope {
  readonly prefix: string;
  /** Heading in the API reference; absent if the API is described elsewhere. */
  readonly tag?: string;
  readonly errors: ErrorFormat;
  readonly anyContentType?: boolean;
  /** Header that has the request's id besides `x-request-id`. */
  readonly idHeader?: string;
}

/** A longer prefix precedes a shorter one that it begins with, because the first match counts. */
export const scopes: readonly Scope[] = [
  {
    prefix: '/v1/messages',
    tag: 'Inference',
    errors: messagesErrorFormat,
    idHeader: 'request-id',
  },
  { prefix: '/v1', tag: 'Inference', errors: inferenceErrorFormat },
  // Ollama's own examples send JSON with curl's default type.
  { prefix: '/api', errors: ollamaErrorFormat, anyContentType: true },
  // Where vLLM has them. The reference describes the same endpoints under /v1.
  { prefix: '/rerank', errors: inferenceErrorFormat },
  { prefix: '/tokenize', errors: inferenceErrorFormat },
  { prefix: '/detokenize', errors: inferenceErrorFormat },
];

/** The scope of a URL, which may have a query. */
export function findScope(url: string): Scope | undefined {
  const [path = ''] = url.split('?', 1);
  return scopes.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`));
}
