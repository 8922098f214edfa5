// POST /v1/chat/completions. A request with `functions` and `function_call`, the predecessors of
// tools, is served as one with tools, and its response is turned back. Everything between sees only
// tools.

import { checkChat } from '#inference/apis/check.ts';
import { defineEndpoint } from '#inference/apis/endpoint.ts';
import { created, messages, model, text, usage } from '#inference/apis/example-values.ts';
import { OpenAiStream, showsUsage, toOpenAiFormat } from '#inference/apis/openai-format.ts';
import { chatResponses } from '#inference/apis/response-schemas.ts';
import type { Task } from '#inference/engine.ts';
import { type ChatMessage, ChatRequest } from '#inference/schema.ts';
import type { ResponseFormat } from '#inference/serving/response-format.ts';
import { parseEvents, toWireEvents } from '#inference/wire/envelope.ts';
import type { EngineChunk, EngineResponse, WireEvents } from '#inference/wire/response.ts';

export const chatEndpoint = defineEndpoint({
  url: '/v1/chat/completions',
  operation: 'chat',
  summary: 'Answer a conversation',
  text: {
    description:
      'Answers a list of messages, as OpenAI’s chat completions do. With `stream: true` the answer arrives as ' +
      'server-sent events, which end with `data: [DONE]`. The `x-served-by` header names what answered; it is ' +
      '`builtin` if the stand-in answered.',
    body: { model, messages, max_tokens: 64 },
    response: {
      id: 'chatcmpl-8f14e45fceea167a',
      object: 'chat.completion',
      created,
      model,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: text, refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage,
    },
  },
  body: ChatRequest,
  responses: chatResponses,
  translate(body) {
    checkChat(body);
    const task = { kind: 'chat', body: toToolRequest(body) } as const;
    return { task, format: usesFunctions(body) ? toFunctionsFormat(task) : toOpenAiFormat(task) };
  },
});

/** True if the client expects function calls in its response, not tool calls. */
const usesFunctions = (body: ChatRequest): boolean => (body.functions ?? []).length > 0;

/** The request in terms of tools; the same object if it has nothing of the older form. */
function toToolRequest(body: ChatRequest): ChatRequest {
  const hasFunctions = body.functions != null || body.function_call != null;
  const hasCalls = body.messages.some((it) => it.role === 'function' || it.function_call != null);
  if (!hasFunctions && !hasCalls) return body;
  const changed: ChatRequest = { ...body };
  if (hasFunctions) {
    const { functions, function_call: choice } = body;
    changed.tools = (functions ?? []).map((it) => ({ type: 'function', function: it }));
    changed.tool_choice =
      typeof choice === 'object' && choice !== null
        ? { type: 'function', function: choice }
        : (choice ?? null);
    // The older form has room for one call.
    changed.parallel_tool_calls = false;
    delete changed.functions;
    delete changed.function_call;
  }
  if (hasCalls) changed.messages = toToolMessages(body.messages);
  return changed;
}

/** Results follow their call, and so get the id of the last call before them. */
function toToolMessages(messages: readonly ChatMessage[]): ChatMessage[] {
  let id = toCallId(0);
  return messages.map(({ function_call: call, ...message }, index) => {
    if (message.role === 'function') return { ...message, role: 'tool', tool_call_id: id };
    if (call == null) return message;
    id = toCallId(index);
    const one = { id, type: 'function' as const, function: call };
    return { ...message, content: message.content ?? null, tool_calls: [one] };
  });
}

/** Nine digits: Mistral's templates take no other ids. The same in each request, so that the prefix stays cached. */
const toCallId = (index: number) => String(index).padStart(9, '0');

/** Choices of a response or of a stream's event, with the first tool call as the function call. */
function toFunctionChoices<
  Choice extends EngineChunk['choices'][number] | EngineResponse['choices'][number],
>(choices: readonly Choice[]): Choice[] {
  return choices.map((choice) => {
    const { message, delta, finish_reason: reason } = choice as OpenChoice;
    return {
      ...choice,
      ...(message && { message: { ...message, ...toCall(message), tool_calls: null } }),
      ...(delta && { delta: toFunctionDelta(delta) }),
      finish_reason: reason === 'tool_calls' ? 'function_call' : reason,
    };
  });
}

interface OpenChoice {
  message?: WithCalls;
  delta?: WithCalls;
  finish_reason: string | null;
}

interface WithCalls {
  tool_calls?:
    | readonly { index?: number; function?: { name?: string; arguments?: string } }[]
    | null;
}

function toFunctionDelta({ tool_calls, ...delta }: WithCalls) {
  return { ...delta, ...toCall({ tool_calls: tool_calls ?? null }) };
}

function toCall({ tool_calls: calls }: WithCalls) {
  const call = calls?.find(({ index }) => (index ?? 0) === 0)?.function;
  if (call === undefined) return null;
  const { name, arguments: text = '' } = call;
  return { function_call: { ...(name != null && { name }), arguments: text } };
}

/** OpenAI's format, with the tool call sent as a function call. */
function toFunctionsFormat(task: Task): ResponseFormat {
  const format = toOpenAiFormat(task);
  return {
    ...format,
    takesWritten: false,
    toWhole: (response, envelope) => format.toWhole(toFunctionResponse(response), envelope),
    openStream: (envelope) => new FunctionsStream(envelope, showsUsage(task)),
  };
}

class FunctionsStream extends OpenAiStream {
  override take(item: EngineChunk | WireEvents): WireEvents {
    return super.take(toFunctionItem(item));
  }
}

const toFunctionResponse = (response: EngineResponse): EngineResponse => ({
  ...response,
  choices: toFunctionChoices(response.choices),
});

const toFunctionItem = (item: EngineChunk | WireEvents): EngineChunk | WireEvents =>
  typeof item === 'string'
    ? parseEvents(item)
        .map((event) => toWireEvents({ ...event, choices: toFunctionChoices(event.choices ?? []) }))
        .join('')
    : { ...item, choices: toFunctionChoices(item.choices) };
