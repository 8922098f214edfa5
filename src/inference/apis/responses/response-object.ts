// The response object: what the request asked for, and what came of it.

import type { InferenceError } from '#inference/errors.ts';
import type { FinishReason, Usage } from '#inference/wire/response.ts';
import type { ResponseObject, ResponseRequest, ResponseUsage } from './schema.ts';

/** A response that has just begun. */
export function toResponseObject(
  request: ResponseRequest,
  { id, created, model }: { id: ResponseObject['id']; created: number; model: string },
): ResponseObject {
  return {
    id,
    object: 'response',
    created_at: created,
    completed_at: null,
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    model,
    output: [],
    usage: null,
    background: request.background ?? false,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    metadata: request.metadata ?? {},
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
    reasoning: {
      effort: request.reasoning?.effort ?? null,
      summary: request.reasoning?.summary ?? null,
    },
    safety_identifier: request.safety_identifier ?? null,
    service_tier: 'default',
    store: request.store ?? true,
    temperature: request.temperature ?? null,
    text: { ...request.text, format: request.text?.format ?? { type: 'text' } },
    tool_choice: request.tool_choice ?? 'auto',
    tools: request.tools ?? [],
    top_logprobs: request.top_logprobs ?? 0,
    top_p: request.top_p ?? null,
    truncation: request.truncation ?? 'disabled',
    user: request.user ?? null,
  };
}

/** What became of a response. */
export type Outcome = Pick<
  ResponseObject,
  'completed_at' | 'status' | 'error' | 'incomplete_details' | 'output' | 'usage'
>;

/** Writes a response several times, although its largest members (tools, instructions) never change. */
export function createResponseWriter(begun: ResponseObject): (outcome?: Outcome) => string {
  const { completed_at, status, error, incomplete_details, output, usage, ...fixed } = begun;
  const rest = JSON.stringify(fixed).slice(1);
  const first: Outcome = { completed_at, status, error, incomplete_details, output, usage };
  return (outcome = first) => `${JSON.stringify(outcome).slice(0, -1)},${rest}`;
}

export function toFinish(
  finish: FinishReason | null,
): Pick<ResponseObject, 'status' | 'incomplete_details'> {
  if (finish !== 'length' && finish !== 'content_filter') {
    return { status: 'completed', incomplete_details: null };
  }
  const reason = finish === 'length' ? 'max_output_tokens' : 'content_filter';
  return { status: 'incomplete', incomplete_details: { reason } };
}

export function toResponseUsage(usage: Usage): ResponseUsage {
  const { completion_tokens_details: details } = usage as {
    completion_tokens_details?: { reasoning_tokens?: number } | null;
  };
  return {
    input_tokens: usage.prompt_tokens,
    input_tokens_details: { cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? 0 },
    output_tokens: usage.completion_tokens,
    output_tokens_details: { reasoning_tokens: details?.reasoning_tokens ?? 0 },
    total_tokens: usage.total_tokens,
  };
}

/** The error of a response that failed. Codex waits as long as the message of a rate limit says. */
export function toResponseError(error: InferenceError): NonNullable<ResponseObject['error']> {
  const { code, message, headers } = error;
  const waitMs = Number(headers['retry-after-ms']);
  if (code !== 'server_is_overloaded' || !(waitMs > 0)) {
    return { code: code ?? 'server_error', message };
  }
  return {
    code: 'rate_limit_exceeded',
    message: `${message} Please try again in ${(waitMs / 1000).toFixed(1)}s.`,
  };
}
