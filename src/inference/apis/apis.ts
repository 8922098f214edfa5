// The inference APIs. Routes, the thread that checks large bodies, refused usage rows, batches, the API reference,
// responses to requests that never reach a route, and the shutdown all read this list.

import type { ErrorFormat } from '#http/error-format.ts';
import { messagesApi } from '#inference/apis/messages/endpoints.ts';
import { ollamaApi } from '#inference/apis/ollama/endpoints.ts';
import type { WithResponses } from '#inference/apis/responses/parts.ts';
import type { Api, Endpoint } from './endpoint.ts';
import { openAiApi, rootApis } from './openai.ts';

/** What the translations of all APIs need of the server. */
export type ApiParts = WithResponses;

/** A longer prefix precedes a shorter one that it begins with, because the first match counts. */
export const apis: readonly Api<ApiParts>[] = [messagesApi, openAiApi, ollamaApi, ...rootApis];

export interface ListedEndpoint extends Endpoint<ApiParts> {
  readonly errors: ErrorFormat;
}

export const endpoints: readonly ListedEndpoint[] = apis.flatMap((api) =>
  api.endpoints.map((endpoint) => ({ ...endpoint, errors: endpoint.errors ?? api.errors })),
);

const byUrl = new Map(endpoints.map((endpoint) => [endpoint.url, endpoint]));

export const findEndpoint = (url: string | undefined): ListedEndpoint | undefined =>
  byUrl.get(url ?? '');

/** The API of a URL, which may have a query. */
export function findApi(url: string): Api<ApiParts> | undefined {
  const [path = ''] = url.split('?', 1);
  return apis.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`));
}
