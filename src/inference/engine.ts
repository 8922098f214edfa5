// BOUNDARY. What answers a request: the model in a child process, an upstream server, or the scripted
// fake. The vocabulary is OpenAI's wire format; ids, `created` and `model` are put on at the edge.

import type { Cancellation } from '#http/client-disconnect.ts';
import type { ChatRequest, CompletionRequest } from './schema.ts';

export type Task =
  | { readonly kind: 'chat'; readonly body: ChatRequest }
  | { readonly kind: 'completion'; readonly body: CompletionRequest };

/** The prompts of a completion, each a sequence of its own. The schema lets no mixed list through. */
export function toGivenPrompts({ prompt }: CompletionRequest): (string | number[])[] {
  if (typeof prompt === 'string') return [prompt];
  const isOne = typeof prompt[0] === 'number';
  return isOne ? [prompt as number[]] : (prompt as (string | number[])[]);
}

/** A chat is one. */
export const countPrompts = ({ kind, body }: Task) =>
  kind === 'chat' ? 1 : toGivenPrompts(body).length;

/** Sequences generated for each prompt, also those that are not returned. */
export const countChoices = ({ kind, body }: Task): number =>
  Math.max(body.n ?? 1, (kind === 'completion' ? body.best_of : null) ?? 1);

/** Tokens that each choice may have; null if the request does not say. */
export const toMaxTokens = ({ kind, body }: Task): number | null =>
  (kind === 'chat' ? body.max_completion_tokens : null) ?? body.max_tokens ?? null;

/** Engines may die of ids that their model does not have, and nobody else knows which those are. */
export function namesTokens({ kind, body }: Task): boolean {
  if ((body.stop_token_ids ?? []).length > 0) return true;
  if (kind === 'chat') return 'input_ids' in body;
  return toGivenPrompts(body).some((prompt) => typeof prompt !== 'string');
}

/** What is the same in every event of an answer, and in the answer itself. */
export interface Envelope {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** The id that was served: the one asked for, or its fallback. */
  readonly model: string;
  readonly kind: Task['kind'];
}

export interface Call {
  readonly envelope: Envelope;
  /** Aborted when the client leaves or the server drains. The engine stops working within 100 ms. */
  readonly signal: Cancellation;
  /** Who is asking, for fairness between callers. Opaque to the engine. */
  readonly caller: string;
  /** Lower goes first where requests wait; 0 unless asked otherwise. */
  readonly priority: number;
  /** The context window of the model that was asked for, in tokens. */
  readonly contextWindow: number;
  /** Sent on to a backend that is reached over HTTP. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Told the counts so far whenever they grow, also for plain answers, so that a request which is
   * aborted or fails can be billed for what was generated until then: the last call has the totals.
   */
  readonly onUsage?: (soFar: Usage) => void;
  /**
   * Told true when the request has been written to a server that reports no counts until its response ends or
   * goes on, and false when that server has failed it. Whatever it generated in between is unknown.
   */
  readonly onWork?: (isAtWork: boolean) => void;
  /** Told what a server says of a stream besides its choices: `timings`, what its filters found. */
  readonly onRest?: ((members: Record<string, unknown>) => void) | undefined;
}

/** A streamed answer as it comes. */
export interface AnswerStream extends AsyncIterable<EngineChunk | WireEvents> {
  /**
   * The same as iterating, without a promise for each item: a thousand slow streams make a great many. What
   * `take` returns is waited for before the next.
   */
  forEach?(take: TakeItem): Promise<void>;
}

export type TakeItem = (item: EngineChunk | WireEvents) => Promise<void> | undefined;

export interface Engine {
  /** Shown to clients as `x-served-by`. */
  readonly name: string;

  /**
   * Resolves when the first chunk exists, so that a failure to start is still an HTTP error.
   * Throws EngineError. After that, iteration may throw EngineError once and then ends.
   * When the signal aborts, whichever of the two is awaited throws the signal's reason.
   * A stream that ends without throwing has sent a finish_reason for every choice, and has told its usage.
   */
  stream(task: Task, call: Call): Promise<AnswerStream>;

  /** The whole answer at once. Throws EngineError, or the signal's reason when it aborts. */
  answer(task: Task, call: Call): Promise<EngineAnswer>;

  /**
   * Tokens the engine must hold for this prompt, after the chat template; null where it can't tell. May be
   * slow on first use. Throws EngineError, or the signal's reason.
   */
  countPromptTokens(task: Task, signal: Cancellation): Promise<number | null>;

  /** Tokens of a text that its model wrote; null where it can't tell. Takes seconds at most, and never fails. */
  countText?(text: string): Promise<number | null>;

  /** Idempotent. Running requests fail with `unavailable`. */
  close(): Promise<void>;
}

/**
 * `unavailable`: it could not be tried or died; another engine may do.
 * `overloaded`: its queue is full; `retryAfterMs` says when to come back.
 * `rejected`: the request itself is wrong and no engine will take it; `code` and `param` as in the API.
 */
export type EngineFailure = 'unavailable' | 'overloaded' | 'rejected';

export class EngineError extends Error {
  readonly failure: EngineFailure;
  readonly code: string | null;
  readonly param: string | null;
  readonly retryAfterMs: number | null;
  /** It answered that it failed, which may be the request's fault: known once another engine does better. */
  readonly isDoubtful: boolean;
  /** The connection broke: the engine may have died of this very request. */
  readonly isBroken: boolean;
  /** This server closed the connection, so the engine may have generated something that is not known here. */
  readonly isCutOff: boolean;

  constructor(
    failure: EngineFailure,
    message: string,
    detail: {
      code?: string | null;
      param?: string | null;
      retryAfterMs?: number;
      isDoubtful?: boolean;
      isBroken?: boolean;
      isCutOff?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: detail.cause });
    this.name = 'EngineError';
    this.failure = failure;
    this.code = detail.code ?? null;
    this.param = detail.param ?? null;
    this.retryAfterMs = detail.retryAfterMs ?? null;
    this.isDoubtful = detail.isDoubtful ?? false;
    this.isBroken = detail.isBroken ?? false;
    this.isCutOff = detail.isCutOff ?? false;
  }
}

/** Another engine, or a later try, may do. */
export const isRetryable = (error: unknown): error is EngineError =>
  error instanceof EngineError && error.failure !== 'rejected';

export const isCutOff = (error: unknown): boolean => error instanceof EngineError && error.isCutOff;

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number } | null;
}

export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: 'function';
  function: { name?: string; arguments: string };
}

export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[] | null;
}

export interface ChatLogprobs {
  content: (TokenLogprob & { top_logprobs: TokenLogprob[] })[] | null;
  refusal: null;
}

export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: (number | null)[];
  top_logprobs: (Record<string, number> | null)[] | null;
  text_offset: number[];
}

export interface ChatChoiceDelta {
  index: number;
  delta: { role?: 'assistant'; content?: string | null; tool_calls?: ToolCallDelta[] };
  logprobs: ChatLogprobs | null;
  finish_reason: FinishReason | null;
}

export interface CompletionChoice {
  index: number;
  text: string;
  logprobs: CompletionLogprobs | null;
  finish_reason: FinishReason | null;
  /** The stop string or token id that ended it; null at a natural end. */
  stop_reason: string | number | null;
  prompt_logprobs?: (Record<string, PromptLogprob> | null)[] | null;
}

export interface PromptLogprob {
  logprob: number;
  rank: number;
  decoded_token: string;
}

export interface ChatChoice {
  index: number;
  message: {
    role: 'assistant';
    content: string | null;
    tool_calls: ToolCall[] | null;
    function_call: null;
    refusal: null;
  };
  logprobs: ChatLogprobs | null;
  finish_reason: FinishReason;
}

/**
 * Whole server-sent events that are already in the wire's form, `data: {...}\n\n` each, under the call's
 * envelope: an upstream speaks the same format, and taking its chunks apart would cost more than serving
 * them. Every character is one byte (latin1), so that any byte survives. Holds neither the usage event nor
 * `[DONE]`: those are written at the edge.
 */
export type WireEvents = string;

/** One event of a stream. The last one of a stream has no choices and carries the usage. */
export interface EngineChunk {
  choices: (ChatChoiceDelta | CompletionChoice)[];
  usage: Usage | null;
  /** What else an upstream says about it. */
  rest?: Record<string, unknown>;
}

export interface EngineAnswer {
  choices: (ChatChoice | CompletionChoice)[];
  usage: Usage;
  /** What else an upstream says about its answer. */
  [extra: string]: unknown;
}
