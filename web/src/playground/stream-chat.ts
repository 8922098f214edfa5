// Sends a chat request, passes on the response as it streams in, and measures it.

import type { ChatRequest } from '#inference/schema.ts';
import { ApiError, send } from '../api.ts';
import type { Outcome, TokenProbability, ToolCall } from './conversation.ts';
import { readEvents } from './sse.ts';

/** The part of a response that has arrived. Mutated as it grows. */
export interface PartialResponse {
  text: string;
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
    delta?: { content?: string | null; tool_calls?: CallPiece[] };
    logprobs?: { content?: Chance[] | null } | null;
    finish_reason?: string | null;
  }[];
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
  error?: { message: string; code?: string };
}

/** Never rejects: the outcome says what failed, or that the user stopped the response. */
export async function streamChat(
  request: ChatRequest,
  signal: AbortSignal,
  onChange: (response: PartialResponse) => void,
): Promise<Outcome> {
  const outcome: Outcome = {
    servedBy: null,
    promptTokens: null,
    completionTokens: null,
    firstTokenMs: null,
    tokensPerSecond: null,
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
    outcome.servedBy = response.headers.get('x-served-by');
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
  const response: PartialResponse = { text: '', tokens: [], toolCalls: [] };
  let firstAt: number | null = null;
  for await (const data of readEvents(body)) {
    if (data === '[DONE]') return;
    const { choices, usage, error } = JSON.parse(data) as Chunk;
    if (error) throw new Error(error.message);
    const [choice] = choices ?? [];
    if (choice && append(response, choice)) {
      firstAt ??= performance.now();
      outcome.firstTokenMs = firstAt - startedAt;
      onChange(response);
    }
    outcome.finish = choice?.finish_reason ?? outcome.finish;
    if (!usage) continue;
    outcome.promptTokens = usage.prompt_tokens;
    outcome.completionTokens = usage.completion_tokens;
    const now = performance.now();
    outcome.tokensPerSecond = toSpeed(
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
  const text = delta?.content ?? '';
  response.text += text;
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
  return text !== '' || (delta?.tool_calls?.length ?? 0) > 0;
}

function toFailure(error: unknown, requestId: string | null) {
  if (error instanceof ApiError) {
    const { message, suggestion } = error;
    return { message, suggestion, requestId: error.requestId };
  }
  const message =
    error instanceof TypeError
      ? 'The connection to the server was lost.'
      : error instanceof Error
        ? error.message
        : String(error);
  return { message, suggestion: null, requestId };
}
