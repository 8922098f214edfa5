// POST /v1/responses, /v1/responses/compact and /v1/responses/input_tokens.

import { defineEndpoint, type Origin } from '#inference/apis/endpoint.ts';
import {
  countJson,
  defer,
  type ResponseGeneration,
} from '#inference/apis/responses/background/defer.ts';
import { toTask } from '#inference/apis/responses/request/to-task.ts';
import type { ChatRequest } from '#inference/schema.ts';
import { toCompaction } from './compact.ts';
import { createResponsesFormat } from './format.ts';
import type { WithResponses } from './parts.ts';
import { compactText, inputTokensText, responseText } from './reference.ts';
import {
  compactionResponses,
  inputTokensResponses,
  responseResponses,
} from './response-schemas.ts';
import {
  CompactRequest,
  type InputItem,
  InputTokensRequest,
  type ResponseObject,
  ResponseRequest,
  type ResponseTool,
} from './schema.ts';
import { createSealer } from './sealer.ts';

type ResponsesOrigin = Origin & WithResponses;

export const responsesEndpoint = defineEndpoint({
  url: '/v1/responses',
  operation: 'responses',
  summary: 'Create a response',
  text: responseText,
  body: ResponseRequest,
  responses: responseResponses,
  async translate(body, from: ResponsesOrigin) {
    const turn = await from.responses.store.openTurn(from.accountId, body);
    const generation = toGeneration(body, turn, from);
    return body.background === true ? defer(body, turn, generation, from) : generation;
  },
});

export const compactEndpoint = defineEndpoint({
  url: '/v1/responses/compact',
  operation: 'responses',
  summary: 'Compact a conversation',
  text: compactText,
  body: CompactRequest,
  responses: compactionResponses,
  async translate(body, from: ResponsesOrigin) {
    const { items } = await from.responses.store.openTurn(from.accountId, {
      ...body,
      store: false,
    });
    const sealer = createSealer(from.responses.seal, from.accountId);
    return {
      ...toCompaction(body, items, sealer, from.id),
      addedBytes: countAdded(body, items, {}),
    };
  },
});

export const inputTokensEndpoint = defineEndpoint({
  url: '/v1/responses/input_tokens',
  operation: 'responses',
  summary: 'Count the tokens of a response',
  text: inputTokensText,
  body: InputTokensRequest,
  responses: inputTokensResponses,
  async translate(body, { accountId, responses }: ResponsesOrigin) {
    const { items } = await responses.store.openTurn(accountId, { ...body, store: false });
    const { task, names } = toTask(body, items, createSealer(responses.seal, accountId).open);
    return {
      counted: task,
      names,
      toAnswer: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
    };
  },
});

/** The items that a model reads, and what becomes of the response. */
export interface GivenTurn {
  readonly items: readonly InputItem[];
  /** Called with the final response before the client learns of it. */
  save(response: ResponseObject): Promise<void>;
}

/** How a response is generated, with the items that the request continues. Throws InferenceError. */
export function toGeneration(
  request: ResponseRequest,
  turn: GivenTurn,
  from: Pick<ResponsesOrigin, 'id' | 'accountId' | 'responses'>,
): ResponseGeneration {
  const { seal, clock } = from.responses;
  const sealer = createSealer(seal, from.accountId);
  const { task, tools, names } = toTask(request, turn.items, sealer.open);
  const format = createResponsesFormat({
    request,
    id: `resp_${from.id}`,
    tools,
    clock,
    seal: sealer.close,
    onFinished: (response) => turn.save(response),
  });
  return {
    task,
    addedBytes: countAdded(request, turn.items, task.body),
    format: { ...format, names },
  };
}

/** Bytes of the prompt that are not in the request: earlier items, and definitions that stand for tools. */
function countAdded(
  { input, tools }: Pick<ResponseRequest, 'input' | 'tools'>,
  items: readonly InputItem[],
  { tools: defined }: Pick<ChatRequest, 'tools'>,
): number {
  const isAll = Array.isArray(input) ? items.length === input.length : items.length <= 1;
  const hasOthers = Array.isArray(input) && items.some((item, index) => item !== input[index]);
  const added = isAll && !hasOthers ? 0 : countJson(items);
  // A function is defined in the request itself.
  const isDefined = tools?.length === defined?.length && tools?.every(isFunction);
  return added + (defined == null || isDefined ? 0 : countJson(defined));
}

const isFunction = ({ type }: ResponseTool) => type === 'function';
