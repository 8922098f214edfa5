// `functions` and `function_call`, the predecessors of tools. A request in that form is served as one with tools, and its
// response is turned back. Everything between sees only tools.

import { OpenAiStream, showsUsage, toOpenAiFormat } from '#inference/apis/openai-format.ts';
import type { ResponseFormat } from '#inference/apis/response-format.ts';
import type { EngineChunk, EngineResponse, Task, WireEvents } from '#inference/engine.ts';
import type { ChatMessage, ChatRequest } from '#inference/schema.ts';
import { parseEvents, toWireEvents } from '#inference/wire.ts';

/** True if the client expects function calls in its response, not tool calls. */
export const usesFunctions = (body: ChatRequest): boolean => (body.functions ?? []).length > 0;

/** The request in terms of tools; the same object if it has nothing of the older form. */
export function toToolRequest(body: ChatRequest): ChatRequest {
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

/** As in `openai-format.ts`, with the tool call sent as a function call. */
export function toFunctionsFormat(task: Task): ResponseFormat {
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
