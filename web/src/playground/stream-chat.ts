// One streamed answer: sends the request, hands on text as it arrives, and measures.

import type { ChatRequest } from '../../../src/inference/schema.ts';
import { ApiError, send } from '../api.ts';
import type { Outcome } from './conversation.ts';
import { readEvents } from './events.ts';

interface Chunk {
  choices?: { delta?: { content?: string | null }; finish_reason?: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
  error?: { message: string; code?: string };
}

/** Never throws: what went wrong, or that the person stopped it, stands in the outcome. */
export async function streamChat(
  request: ChatRequest,
  signal: AbortSignal,
  onText: (text: string) => void,
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
    if (response.body === null) throw new Error('The server sent no answer.');
    await follow(response.body, startedAt, outcome, onText);
    if (outcome.finish === null) throw new Error('The answer broke off before its end.');
  } catch (error) {
    if (signal.aborted) outcome.finish = 'stopped';
    else outcome.failure = toFailure(error, requestId);
  }
  return outcome;
}

async function follow(
  body: ReadableStream<Uint8Array>,
  startedAt: number,
  outcome: Outcome,
  onText: (text: string) => void,
): Promise<void> {
  let firstAt: number | null = null;
  for await (const data of readEvents(body)) {
    if (data === '[DONE]') return;
    const { choices, usage, error } = JSON.parse(data) as Chunk;
    if (error) throw new Error(error.message);
    const [choice] = choices ?? [];
    const text = choice?.delta?.content;
    if (text) {
      firstAt ??= performance.now();
      outcome.firstTokenMs = firstAt - startedAt;
      onText(text);
    }
    outcome.finish = choice?.finish_reason ?? outcome.finish;
    if (!usage) continue;
    outcome.promptTokens = usage.prompt_tokens;
    outcome.completionTokens = usage.completion_tokens;
    const seconds = firstAt === null ? 0 : (performance.now() - firstAt) / 1000;
    // The first token's time is in the time to first token, so it does not count as speed.
    if (seconds > 0 && usage.completion_tokens > 1) {
      outcome.tokensPerSecond = (usage.completion_tokens - 1) / seconds;
    }
  }
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
