// Sends a chat request, passes on the response as it streams in, and measures it.

import type { Outcome, ToolCall } from '#accounts/conversations/schema.ts';
import type { ChatRequest } from '#inference/schema.ts';
import { readEvents } from '#lib/read-events.ts';
import { ApiError, send } from '../api.ts';
import type { TokenProbability } from './conversation.ts';
import { splitThinking } from './thinking.ts';

/** The part of a response that has arrived. Mutated as it grows. */
export interface PartialResponse {
  /** Everything in `content`, with a leading `<think>` section. */
  content: string;
  /** The answer. */
  text: string;
  /** What the model thought before it answered; empty if nothing. */
  reasoning: string;
  /** How long it thought. */
  reasoningMs: number;
  tokens: TokenProbability[];
  toolCalls: ToolCall[];
}

interface CallPiece {
  index: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

interface Chance {
  token: string;
  logprob: number;
  top_logprobs?: { token: string; logprob: number }[];
}

interface Chunk {
  choices?: {
    delta?: {
      content?: string | null;
      /** Named by vLLM, SGLang and DeepSeek, or by newer vLLM and OpenRouter. */
      reasoning_content?: string | null;
      reasoning?: string | null;
      tool_calls?: CallPiece[];
    };
    logprobs?: { content?: Chance[] | null } | null;
    finish_reason?: string | null;
  }[];
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
  error?: { message: string; code?: string };
}

export const emptyResponse = (): PartialResponse => ({
  content: '',
  text: '',
  reasoning: '',
  reasoningMs: 0,
  tokens: [],
  toolCalls: [],
});

/** Never rejects: the outcome says what failed, or that the user stopped the response. */
export async function streamChat(
  request: ChatRequest,
  signal: AbortSignal,
  onChange: (response: PartialResponse) => void,
): Promise<Outcome> {
  const outcome: Outcome = {
    served_by: null,
    prompt_tokens: null,
    completion_tokens: null,
    first_token_ms: null,
    tokens_per_second: null,
    finish: null,
    failure: null,
  };
  let requestId: string | null = null;
  try {
    const startedAt = performance.now();
    const response = await send('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
      signal,
    });
    requestId = response.headers.get('x-request-id');
    outcome.served_by = response.headers.get('x-served-by');
    if (response.body === null) throw new Error('The server sent no response.');
    await readResponse(response.body, startedAt, outcome, onChange);
    if (outcome.finish === null) throw new Error('The response ended unexpectedly.');
  } catch (error) {
    if (signal.aborted) outcome.finish = 'stopped';
    else outcome.failure = toFailure(error, requestId);
  }
  return outcome;
}

async function readResponse(
  body: ReadableStream<Uint8Array>,
  startedAt: number,
  outcome: Outcome,
  onChange: (response: PartialResponse) => void,
): Promise<void> {
  const response = emptyResponse();
  let firstAt: number | null = null;
  for await (const data of readEvents(body)) {
    if (data === '[DONE]') return;
    const { choices, usage, error } = JSON.parse(data) as Chunk;
    if (error) throw new Error(error.message);
    const [choice] = choices ?? [];
    if (choice && append(response, choice)) {
      firstAt ??= performance.now();
      outcome.first_token_ms = firstAt - startedAt;
      const isAnswering = response.text !== '' || response.toolCalls.length > 0;
      if (response.reasoning !== '' && !isAnswering) {
        response.reasoningMs = performance.now() - firstAt;
      }
      onChange(response);
    }
    outcome.finish = choice?.finish_reason ?? outcome.finish;
    if (!usage) continue;
    outcome.prompt_tokens = usage.prompt_tokens;
    outcome.completion_tokens = usage.completion_tokens;
    const now = performance.now();
    outcome.tokens_per_second = toSpeed(
      usage.completion_tokens,
      now - startedAt,
      now - (firstAt ?? now),
    );
  }
}

/** Below this duration, the gaps between chunks say more about buffers than about the model. */
const minStreamMs = 1000;

/**
 * The speed after the first token. A short answer often arrives at once, so its speed is that of the whole
 * request. Null if there is nothing to measure.
 */
export function toSpeed(tokens: number, totalMs: number, streamMs: number): number | null {
  if (tokens < 2 || totalMs <= 0) return null;
  return streamMs < minStreamMs ? (tokens / totalMs) * 1000 : ((tokens - 1) / streamMs) * 1000;
}

/** Returns true if the chunk added anything. */
function append(
  response: PartialResponse,
  { delta, logprobs }: NonNullable<Chunk['choices']>[number],
): boolean {
  const content = delta?.content ?? '';
  const reasoning = delta?.reasoning_content ?? delta?.reasoning ?? '';
  response.content += content;
  response.reasoning += reasoning;
  if (content !== '') Object.assign(response, splitThinking(response, content));
  for (const { token, logprob, top_logprobs = [] } of logprobs?.content ?? []) {
    response.tokens.push({ token, logprob, others: top_logprobs });
  }
  for (const piece of delta?.tool_calls ?? []) {
    const call = response.toolCalls[piece.index] ?? { id: '', name: '', arguments: '' };
    response.toolCalls[piece.index] = call;
    call.id ||= piece.id ?? '';
    call.name += piece.function?.name ?? '';
    call.arguments += piece.function?.arguments ?? '';
  }
  return content !== '' || reasoning !== '' || (delta?.tool_calls?.length ?? 0) > 0;
}

function toFailure(error: unknown, requestId: string | null) {
  if (error instanceof ApiError) {
    const { message, suggestion } = error;
    return { message, suggestion, request_id: error.requestId };
  }
  const message =
    error instanceof TypeError
      ? 'The connection to the server was lost.'
      : error instanceof Error
        ? error.message
        : String(error);
  return { message, suggestion: null, request_id: requestId };
}
