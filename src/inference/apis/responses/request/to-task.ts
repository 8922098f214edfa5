// Translates a request to the Responses API into a chat. The items of the input are given, because
// earlier responses and references have been resolved by then.

import type { InputItem, ResponseRequest, ResponseTool } from '#inference/apis/responses/schema.ts';
import type { Task } from '#inference/engine.ts';
import { type InferenceError, invalidValue, missingParameter } from '#inference/errors.ts';
import type { ChatRequest } from '#inference/schema.ts';
import type { FindNames, OwnNames } from '#inference/serving/own-names.ts';
import { type PlacedItems, toMessages, type Unseal } from './messages.ts';
import { createToolSet, type ToolSet, toChatTools } from './tools.ts';

export interface Translated {
  readonly task: Extract<Task, { kind: 'chat' }>;
  /** The tools that calls in the response stand for. */
  readonly tools: ToolSet;
  readonly names: FindNames;
}

/** The members of a chat that errors name, and what they were translated from. */
const members: OwnNames['members'] = {
  messages: 'input',
  max_completion_tokens: 'max_output_tokens',
  response_format: 'text.format',
  reasoning_effort: 'reasoning.effort',
  verbosity: 'text.verbosity',
  // Their places differ: a namespace of the request holds several tools of the chat.
  tools: 'tools',
  tool_choice: 'tool_choice',
};

/** The items that a request itself brings. */
export function toInputItems(input: ResponseRequest['input']): InputItem[] {
  if (input == null) return [];
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input;
}

/** Where a request has its items. The first ones are those of earlier responses. */
function toPlaced(input: ResponseRequest['input'], items: readonly InputItem[]): PlacedItems {
  const earlier = items.length - toInputItems(input).length;
  return {
    items,
    placeOf(index) {
      // A background response is run without its input, which is among the items.
      if (input == null) return 'input';
      if (index < earlier) return 'previous_response_id';
      return typeof input === 'string' ? 'input' : `input[${index - earlier}]`;
    },
  };
}

/** Throws InferenceError. */
export function toTask(
  request: ResponseRequest,
  items: readonly InputItem[],
  unseal: Unseal,
): Translated {
  checkRequest(request);
  const given = collectTools(request, items);
  const tools = createToolSet(given);
  const chatTools = toChatTools(
    tools,
    given,
    request.tool_choice ?? null,
    request.parallel_tool_calls ?? null,
  );
  const placed = toPlaced(request.input, items);
  const { messages, sources } = toMessages(request.instructions ?? null, placed, tools, unseal);
  const body: ChatRequest = {
    model: request.model,
    messages,
    ...(request.stream === true && { stream: true }),
    ...toSampling(request),
    ...chatTools,
    ...toOutputForm(request),
  };
  if (body.response_format != null && isForced(body.tool_choice)) throw bothForced();
  const dropsOldest = request.truncation === 'auto';
  return {
    task: {
      kind: 'chat',
      body,
      fitsMaximum: true,
      dropsOldest,
      conversation: request.prompt_cache_key ?? undefined,
    },
    tools,
    names: () => ({ members, messages: dropsOldest ? [] : sources }),
  };
}

/** Searches and later messages of the developer add tools to those of the request. */
function collectTools(request: ResponseRequest, items: readonly InputItem[]): ResponseTool[] {
  const found = items.filter(
    ({ type }) => type === 'tool_search_output' || type === 'additional_tools',
  );
  return [...(request.tools ?? []), ...found.flatMap(({ tools }) => tools ?? [])];
}

function checkRequest(request: ResponseRequest): void {
  if (request.conversation != null) {
    throw invalidValue(
      'conversation',
      'conversation is not supported here. Send previous_response_id, or the items of the conversation.',
    );
  }
  if (request.prompt != null) {
    throw invalidValue(
      'prompt',
      'prompt is not supported here, because this server stores no prompts. Send instructions and input.',
    );
  }
  for (const key of Object.keys(request.metadata ?? {})) {
    if (key.length > 64) {
      throw invalidValue('metadata', 'The keys of metadata must have at most 64 characters.');
    }
  }
  const format = request.text?.format;
  if (format?.type === 'json_schema' && format.schema == null) {
    throw missingParameter('text.format.schema');
  }
  if (request.background === true && request.store === false) {
    throw invalidValue('background', 'background requires that store is true.');
  }
}

function toSampling(request: ResponseRequest): Partial<ChatRequest> {
  const { temperature, top_p, max_output_tokens, user, safety_identifier } = request;
  const showsLogprobs = wantsLogprobs(request);
  return {
    ...(temperature != null && { temperature }),
    ...(top_p != null && { top_p }),
    ...(max_output_tokens != null && { max_completion_tokens: max_output_tokens }),
    ...(user != null && { user }),
    ...(safety_identifier != null && { safety_identifier }),
    ...(showsLogprobs && { logprobs: true, top_logprobs: request.top_logprobs ?? 0 }),
  };
}

export const wantsLogprobs = ({ include, top_logprobs }: ResponseRequest): boolean =>
  include?.includes('message.output_text.logprobs') === true || (top_logprobs ?? 0) > 0;

function toOutputForm({ text, reasoning }: ResponseRequest): Partial<ChatRequest> {
  const format = text?.format;
  const effort = reasoning?.effort;
  const verbosity = text?.verbosity;
  return {
    ...(format?.type === 'json_object' && { response_format: { type: 'json_object' } }),
    ...(format?.type === 'json_schema' && {
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: format.name ?? 'response',
          schema: format.schema,
          ...(format.description != null && { description: format.description }),
          ...(format.strict != null && { strict: format.strict }),
        },
      },
    }),
    ...(effort != null && { reasoning_effort: effort }),
    ...(verbosity != null && { verbosity }),
  };
}

const isForced = (choice: ChatRequest['tool_choice']) =>
  choice === 'required' || typeof choice === 'object';

const bothForced = (): InferenceError =>
  invalidValue(
    'text.format',
    'A required tool call and text.format exclude each other. Send only one of the two.',
  );
