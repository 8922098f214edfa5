// Folds a stream's chunks into the plain response, so that both have the same content.

import type { Task } from '#inference/engine.ts';
import type {
  ChatChoice,
  ChatChoiceDelta,
  ChatLogprobs,
  CompletionChoice,
  CompletionLogprobs,
  EngineChunk,
  EngineResponse,
  ToolCall,
  ToolCallDelta,
  Usage,
} from './response.ts';

/** Throws if the stream ended without a finish reason, because the response is then incomplete. */
export function foldChunks(kind: Task['kind'], chunks: Iterable<EngineChunk>): EngineResponse {
  const parts = new Map<number, (ChatChoiceDelta | CompletionChoice)[]>();
  let usage: Usage | null = null;
  for (const chunk of chunks) {
    usage = chunk.usage ?? usage;
    for (const choice of chunk.choices) {
      const known = parts.get(choice.index);
      if (known === undefined) parts.set(choice.index, [choice]);
      else known.push(choice);
    }
  }
  if (usage === null) throw new Error('The stream ended without usage');
  const choices = [...parts]
    .sort(([a], [b]) => a - b)
    .map(([index, deltas]) =>
      kind === 'chat'
        ? foldChat(index, deltas as ChatChoiceDelta[])
        : foldCompletion(index, deltas as CompletionChoice[]),
    );
  return { choices, usage };
}

function foldChat(index: number, deltas: readonly ChatChoiceDelta[]): ChatChoice {
  const content = deltas.map(({ delta }) => delta.content ?? '').join('');
  const reasoning = deltas.map(({ delta }) => delta.reasoning_content ?? '').join('');
  const calls = foldToolCalls(deltas.flatMap(({ delta }) => delta.tool_calls ?? []));
  const stop = deltas.find(({ stop_reason }) => stop_reason != null)?.stop_reason;
  return {
    index,
    message: {
      role: 'assistant',
      content: content === '' && calls !== null ? null : content,
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      tool_calls: calls,
      function_call: null,
      refusal: null,
    },
    logprobs: foldChatLogprobs(deltas),
    finish_reason: toFinish(deltas),
    ...(stop != null && { stop_reason: stop }),
  };
}

function foldToolCalls(deltas: readonly ToolCallDelta[]): ToolCall[] | null {
  const calls: ToolCallsByIndex = new Map();
  for (const delta of deltas) addToolCall(calls, delta);
  return calls.size === 0 ? null : [...calls].sort(([a], [b]) => a - b).map(([, call]) => call);
}

export type ToolCallsByIndex = Map<number, ToolCall>;

/** Adds one piece to its call. Upstreams may send the id and the name later than the first piece. */
export function addToolCall(calls: ToolCallsByIndex, { index, id, function: part }: ToolCallDelta) {
  let call = calls.get(index);
  if (call === undefined) {
    call = { id: '', type: 'function', function: { name: '', arguments: '' } };
    calls.set(index, call);
  }
  call.id ||= id ?? '';
  call.function.name ||= part?.name ?? '';
  call.function.arguments += part?.arguments ?? '';
}

function foldChatLogprobs(deltas: readonly ChatChoiceDelta[]): ChatLogprobs | null {
  if (deltas.every(({ logprobs }) => logprobs === null)) return null;
  return { content: deltas.flatMap(({ logprobs }) => logprobs?.content ?? []), refusal: null };
}

function foldCompletion(index: number, deltas: readonly CompletionChoice[]): CompletionChoice {
  const scored = deltas.find(({ prompt_logprobs }) => prompt_logprobs !== undefined);
  return {
    index,
    text: deltas.map(({ text }) => text).join(''),
    logprobs: foldCompletionLogprobs(deltas),
    finish_reason: toFinish(deltas),
    stop_reason: deltas.find(({ stop_reason }) => stop_reason !== null)?.stop_reason ?? null,
    ...(scored !== undefined && { prompt_logprobs: scored.prompt_logprobs }),
  };
}

function foldCompletionLogprobs(deltas: readonly CompletionChoice[]): CompletionLogprobs | null {
  const parts = deltas.flatMap(({ logprobs }) => (logprobs === null ? [] : [logprobs]));
  if (parts.length === 0) return null;
  const tops = parts.flatMap(({ top_logprobs }) => top_logprobs ?? []);
  return {
    tokens: parts.flatMap(({ tokens }) => tokens),
    token_logprobs: parts.flatMap(({ token_logprobs }) => token_logprobs),
    top_logprobs: parts.every(({ top_logprobs }) => top_logprobs === null) ? null : tops,
    text_offset: parts.flatMap(({ text_offset }) => text_offset),
  };
}

function toFinish(deltas: readonly (ChatChoiceDelta | CompletionChoice)[]) {
  const finish = deltas.find(({ finish_reason }) => finish_reason !== null)?.finish_reason;
  if (finish == null) throw new Error('The stream ended without a finish reason');
  return finish;
}
