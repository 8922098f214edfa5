// What engines generate: choices, deltas, log probabilities and usage, as OpenAI's wire format has them.

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number } | null;
  /** Absent if the engine does not know how many tokens the model thought. */
  completion_tokens_details?: { reasoning_tokens?: number } | null;
}

export const newUsage = (prompt_tokens: number, completion_tokens: number): Usage => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
  prompt_tokens_details: null,
});

export const noUsage = newUsage(0, 0);

/** The usage with other counts. The details stay. */
export const withCounts = (
  usage: Usage,
  prompt_tokens: number,
  completion_tokens = usage.completion_tokens,
): Usage => ({
  ...usage,
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
});

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
  delta: {
    role?: 'assistant';
    content?: string | null;
    /** What a reasoning model thinks, apart from its answer. */
    reasoning_content?: string | null;
    tool_calls?: ToolCallDelta[];
  };
  logprobs: ChatLogprobs | null;
  finish_reason: FinishReason | null;
  /** The stop string that ended the choice, if the engine reports it. */
  stop_reason?: string | number | null;
}

export interface CompletionChoice {
  index: number;
  text: string;
  logprobs: CompletionLogprobs | null;
  finish_reason: FinishReason | null;
  /** The stop string or token id that ended the choice; null at a natural end. */
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
    /** Absent if the model did not think. */
    reasoning_content?: string;
    tool_calls: ToolCall[] | null;
    function_call: null;
    refusal: null;
  };
  logprobs: ChatLogprobs | null;
  finish_reason: FinishReason;
  /** As in a stream. */
  stop_reason?: string | number | null;
}

/**
 * Whole server-sent events in wire format, `data: {...}\n\n` each, under the call's envelope. An upstream speaks
 * the same format, and decoding its chunks would cost more than serving them. A byte string (latin1, one character
 * per byte). Holds neither the usage event nor `[DONE]`: the API layer writes those.
 */
export type WireEvents = string;

/** One event of a stream. The last event has no choices and carries the usage. */
export interface EngineChunk {
  choices: (ChatChoiceDelta | CompletionChoice)[];
  /** The counts so far, if the request asks for `continuous_usage_stats`; otherwise null in all events but the last. */
  usage: Usage | null;
  /** Other members of an upstream's event. */
  rest?: Record<string, unknown>;
}

export interface EngineResponse {
  choices: (ChatChoice | CompletionChoice)[];
  usage: Usage;
  /** Other members of an upstream's response. */
  [extra: string]: unknown;
}

/**
 * A large response that was parsed and written elsewhere than on the event loop: the bytes of the wire before and
 * after its usage. A class, because a server may name its members as it likes.
 */
export class WrittenResponse implements EngineResponse {
  [extra: string]: unknown;
  /** Empty: the choices are not known here. */
  readonly choices: EngineResponse['choices'] = [];
  usage: Usage;
  readonly before: Uint8Array;
  readonly after: Uint8Array;

  constructor(usage: Usage, before: Uint8Array, after: Uint8Array) {
    this.usage = usage;
    this.before = before;
    this.after = after;
  }
}
