// BOUNDARY. An engine generates the response to a request: a model in a child process, or an upstream server. The
// vocabulary is OpenAI's wire format; the API layer adds `id`, `created` and `model`.

import type { Cancellation } from '#http/client-disconnect.ts';
import type { EngineChunk, EngineResponse, Usage, WireEvents } from '#inference/wire/response.ts';
import { QueueRefusal } from '#lib/async/bounded-fair-queue.ts';
import { JobThreadClosed } from '#lib/async/job-thread.ts';
import type {
  Embeddings,
  EmbedTask,
  Ranking,
  RerankTask,
  TokenizeTask,
  Tokens,
} from './pooling.ts';
import type { ChatRequest, CompletionRequest } from './schema.ts';
import type { ThinkTags } from './think-tags.ts';

export type Task =
  | {
      readonly kind: 'chat';
      readonly body: ChatRequest;
      /** A maximum of tokens that doesn't fit is reduced to what the prompt leaves of the window. Not for engines. */
      readonly fitsMaximum?: boolean;
      /** The oldest messages of a prompt that doesn't fit are dropped. Not for engines. */
      readonly dropsOldest?: boolean;
      /**
       * Images that can't reach the engine become a text that says so: the client repeats them with
       * every turn, and a refusal would end its conversation. Not for engines.
       */
      readonly describesMedia?: boolean;
      /** The client's id of the conversation, by which a backend that knows its prefix is found. Not for engines. */
      readonly conversation?: string | undefined;
      /** How think tags in the model's text are read. Default `split`. */
      readonly thinkTags?: ThinkTags | undefined;
    }
  | { readonly kind: 'completion'; readonly body: CompletionRequest };

/** The prompts of a completion, each a sequence of its own. The schema refuses lists of mixed types. */
/**
 * Tokens of a prompt that are no byte of the request: a chat template adds them, and some hold a
 * system prompt. Reservations and the check of a server's counts must agree on it, or a response
 * costs more than was reserved of a budget.
 */
export const maxTemplateTokens = 1024;

export function toGivenPrompts({ prompt }: CompletionRequest): (string | number[])[] {
  if (typeof prompt === 'string') return [prompt];
  const isOne = typeof prompt[0] === 'number';
  return isOne ? [prompt as number[]] : (prompt as (string | number[])[]);
}

/** The number of prompts in a task. A chat is one prompt. */
export const countPrompts = ({ kind, body }: Task) =>
  kind === 'chat' ? 1 : toGivenPrompts(body).length;

/** Sequences generated for each prompt, including those that are not returned (`best_of`). */
export const countChoices = ({ kind, body }: Task): number =>
  Math.max(body.n ?? 1, (kind === 'completion' ? body.best_of : null) ?? 1);

/** Maximum tokens of each choice; null if the request sets none. */
export const toMaxTokens = ({ kind, body }: Task): number | null =>
  (kind === 'chat' ? body.max_completion_tokens : null) ?? body.max_tokens ?? null;

/**
 * True if the request holds token ids. Some engines crash on ids that their model does not have, and only the
 * engine knows which those are.
 */
export function namesTokens({ kind, body }: Task): boolean {
  if ((body.stop_token_ids ?? []).length > 0) return true;
  if (kind === 'chat') return 'input_ids' in body;
  return toGivenPrompts(body).some((prompt) => typeof prompt !== 'string');
}

/** The members that every event of a response shares, and the response itself. */
export interface Envelope {
  readonly requestId: string;
  /** Id of the response: the request's, with a prefix. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** Id of the model served: the requested one, or its fallback. */
  readonly model: string;
  readonly kind: Task['kind'];
}

export interface Call {
  readonly envelope: Envelope;
  /** Aborted when the client disconnects or the server drains. The engine must stop within 100 ms. */
  readonly signal: Cancellation;
  /** Identifies the account for fairness between callers. Opaque to the engine. */
  readonly caller: string;
  /** Waiting requests with a lower number go first. Default 0. */
  readonly priority: number;
  /** Context window of the requested model, in tokens. */
  readonly contextWindow: number;
  /** Headers forwarded to a backend that is reached over HTTP. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Called with the counts so far whenever they grow, for plain responses too, so that an aborted or failed
   * request can be billed for the tokens generated. The last call has the totals.
   */
  readonly onUsage?: (soFar: Usage) => void;
  /**
   * Called with true when the request is written to a server that reports no counts until its response starts or
   * ends, and with false when that server fails the request. The tokens generated in between are unknown.
   */
  readonly onWork?: (isAtWork: boolean) => void;
  /** Called if the request has to wait for a deployment to start. */
  readonly onHeld?: ((hold: { progress(): string | null }) => void) | undefined;
  /** Called with members of a stream's events besides its choices, e.g. `timings` or filter results. */
  readonly onRest?: ((members: Record<string, unknown>) => void) | undefined;
}

/** A streamed response. */
export interface ResponseStream extends AsyncIterable<EngineChunk | WireEvents> {
  /**
   * Same as iterating, without a promise per item: a thousand slow streams would create a great many. A promise
   * returned by `take` is awaited before the next item.
   */
  forEach?(take: TakeItem): Promise<void>;
}

export type TakeItem = (item: EngineChunk | WireEvents) => Promise<void> | undefined;

export interface Engine {
  /** Sent to clients as `x-served-by`. */
  readonly name: string;

  /**
   * Resolves when the first chunk exists, so that a failure to start is still an HTTP error.
   * Throws EngineError. After that, iteration may throw EngineError once and then ends.
   * When the signal aborts, the pending promise (this one or the iterator's) rejects with the signal's reason.
   * A stream that ends without throwing has sent a finish_reason for every choice and reported its usage.
   */
  stream(task: Task, call: Call): Promise<ResponseStream>;

  /**
   * Returns the whole response at once, a large one perhaps as a WrittenResponse. Throws EngineError, or the
   * signal's reason when it aborts.
   */
  respond(task: Task, call: Call): Promise<EngineResponse>;

  /**
   * Tokens of the prompt after the chat template; null if the engine can't count them. May be slow on first use.
   * Throws EngineError, or the signal's reason.
   */
  countPromptTokens(task: Task, signal: Cancellation): Promise<number | null>;

  /**
   * Why the engine can't serve a request that another could, as EngineError `rejected`; null if it
   * can. Absent if it serves all. Quick, and only called for requests with a constraint.
   */
  refusalOf?(task: Task): EngineError | null;

  /** Tokens of a generated text; null if the engine can't count them. Takes at most seconds, and never fails. */
  countText?(text: string): Promise<number | null>;

  /**
   * Absent if the engine can't embed texts, like the next three if it can't do what they say. Throws EngineError, or
   * the signal's reason when it aborts: `rejected` if the model is not one that embeds.
   */
  embed?(task: EmbedTask, call: PoolingCall): Promise<Embeddings>;
  rerank?(task: RerankTask, call: PoolingCall): Promise<Ranking>;
  tokenize?(task: TokenizeTask, signal: Cancellation): Promise<Tokens>;
  detokenize?(tokens: readonly number[], signal: Cancellation): Promise<string>;

  /** Idempotent. Running requests fail with `unavailable`. */
  close(): Promise<void>;
}

/** A call without an envelope, which only generated responses have. */
export type PoolingCall = Omit<Call, 'envelope' | 'onRest'>;

/**
 * `unavailable`: the engine could not be reached or failed; another one may succeed.
 * `overloaded`: the engine's queue is full; `retryAfterMs` says when to retry.
 * `rejected`: the request is invalid and no engine will take it; `code` and `param` as in the API.
 */
export type EngineFailure = 'unavailable' | 'overloaded' | 'rejected';

export class EngineError extends Error {
  readonly failure: EngineFailure;
  readonly code: string | null;
  readonly param: string | null;
  readonly retryAfterMs: number | null;
  /** The engine reported a failure that the request may have caused. Another engine's success disproves that. */
  readonly isDoubtful: boolean;
  /** A doubtful failure: the response can't be read. The next client's request that fares no better proves it. */
  readonly isUnreadable: boolean;
  /** The connection broke. The request may have crashed the engine. */
  readonly isBroken: boolean;
  /** The same engine may take the request in a moment. */
  readonly isPassing: boolean;
  /** Millrace closed the connection. The engine may have generated tokens that were never counted. */
  readonly isCutOff: boolean;

  constructor(
    failure: EngineFailure,
    message: string,
    detail: {
      code?: string | null;
      param?: string | null;
      retryAfterMs?: number;
      isDoubtful?: boolean;
      isUnreadable?: boolean;
      isBroken?: boolean;
      isPassing?: boolean;
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
    this.isUnreadable = detail.isUnreadable ?? false;
    this.isDoubtful = detail.isDoubtful ?? this.isUnreadable;
    this.isBroken = detail.isBroken ?? false;
    this.isPassing = detail.isPassing ?? (failure === 'overloaded' || this.isBroken);
    this.isCutOff = detail.isCutOff ?? false;
  }
}

/**
 * The message of `context_length_exceeded`. LiteLLM recognises its beginning and then tries a model with a larger
 * window. Null stands for what is not known; `completion` is null if the request sets no maximum.
 */
export function toOverflowText(counts: {
  window: number | null;
  prompt: number | null;
  /** `prompt` is a lower bound. Default false. */
  isAtLeast?: boolean;
  completion: number | null;
}): string {
  const { window, prompt, isAtLeast, completion } = counts;
  const length = window === null ? 'exceeded' : `${window} tokens`;
  const has = prompt === null ? '' : `the prompt has ${isAtLeast ? 'at least ' : ''}${prompt} and `;
  const needs = completion === null ? 'at least 1 is' : `${completion} are`;
  return `This model's maximum context length is ${length}; ${has}${needs} needed for the completion. Shorten the prompt or ask for fewer tokens.`;
}

export const toOverloaded = ({
  message,
  retryAfterMs,
}: Pick<QueueRefusal, 'message' | 'retryAfterMs'>) =>
  new EngineError('overloaded', message, { retryAfterMs });

/** Turns a job thread's refusal into an EngineError, and returns any other error as it is. */
export function toEngineError(error: unknown): unknown {
  if (error instanceof QueueRefusal) return toOverloaded(error);
  if (!(error instanceof JobThreadClosed)) return error;
  return new EngineError('unavailable', 'The server is stopping.');
}

/** True if another engine or a later attempt may succeed. */
export const isRetryable = (error: unknown): error is EngineError =>
  error instanceof EngineError && error.failure !== 'rejected';

export const isCutOff = (error: unknown): boolean => error instanceof EngineError && error.isCutOff;
