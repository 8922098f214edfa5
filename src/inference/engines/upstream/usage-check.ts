// Checks whether the token counts that a server reports are plausible. They are billed, so a count that exceeds what
// was requested, or what the response can hold, is discarded and the tokens are counted here instead.

import { findOtherPart } from '#inference/content-parts.ts';
import {
  countChoices,
  countPrompts,
  type Task,
  toMaxTokens,
  type Usage,
} from '#inference/engine.ts';

export interface CountBounds {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Generated tokens that may have left no byte in the response. Infinity if its size says nothing. */
  readonly unseenTokens: number;
}

/** Implausible counts, and the bounds they exceeded. A count is NaN if it was not a non-negative integer. */
export interface ImplausibleCounts {
  readonly reported: Usage;
  readonly bounds: CountBounds;
  readonly responseBytes: number;
}

/** Tokens per prompt that a chat template may add: some hold a system prompt of their own. */
const templateTokens = 1024;
/** Servers differ in whether they count the tokens that end a choice. */
const endTokens = 8;
/** Special tokens of a choice, and short reasoning that is neither shown nor counted separately. */
const unseenPerChoice = 1024;

/** Members of a request that make servers reason without showing all of it. */
const reasoningMembers = [
  'reasoning',
  'reasoning_effort',
  'reasoning_format',
  'include_reasoning',
  'thinking',
  'chat_template_kwargs',
] as const;

export function toCountBounds(
  task: Task,
  contextWindow: number,
  requestBytes: number,
): CountBounds {
  const prompts = countPrompts(task);
  const choices = prompts * countChoices(task);
  const named = toMaxTokens(task);
  const room = contextWindow * prompts;
  // A token of text is at least one byte of the request. The tokens of an image have no such bound.
  const bytes = isText(task) ? requestBytes + templateTokens * prompts : room;
  return {
    promptTokens: Math.min(room, bytes),
    completionTokens: (Math.min(named ?? contextWindow, contextWindow) + endTokens) * choices,
    unseenTokens: mayHide(task) ? Number.POSITIVE_INFINITY : unseenPerChoice * choices,
  };
}

const isText = ({ kind, body }: Task) => kind !== 'chat' || findOtherPart(body.messages) === null;

/** Candidates of `best_of` that were not chosen, and reasoning that is not shown, are generated all the same. */
function mayHide({ kind, body }: Task): boolean {
  if (kind === 'completion' && (body.best_of ?? 1) > (body.n ?? 1)) return true;
  const members: Record<string, unknown> = body;
  return reasoningMembers.some((name) => members[name] != null);
}

/** A class, because every request creates one. */
export class UsageCheck {
  readonly #bounds: CountBounds;
  readonly #report: ((counts: ImplausibleCounts) => void) | undefined;
  /** Set by the first implausible count. From then on, no count that the server reports for this response is used. */
  isDistrusted = false;

  constructor(bounds: CountBounds, report: ((counts: ImplausibleCounts) => void) | undefined) {
    this.#bounds = bounds;
    this.#report = report;
  }

  /** Returns the counts if they are plausible, otherwise null. Reports the first implausible ones. */
  accept(usage: Usage, responseBytes: number): Usage | null {
    if (this.isDistrusted) return null;
    if (isPlausible(usage, this.#bounds, responseBytes)) return usage;
    this.isDistrusted = true;
    this.#report?.({ reported: usage, bounds: this.#bounds, responseBytes });
    return null;
  }

  /** Limits a count from another source to the number of tokens requested. */
  cap(completionTokens: number): number {
    return Math.min(completionTokens, this.#bounds.completionTokens);
  }
}

/** Every comparison with NaN is false, so an invalid count is implausible. */
export function isPlausible(usage: Usage, bounds: CountBounds, responseBytes: number): boolean {
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details } = usage;
  if (!(prompt_tokens <= bounds.promptTokens)) return false;
  if (!(completion_tokens <= bounds.completionTokens)) return false;
  if (!(total_tokens <= bounds.promptTokens + bounds.completionTokens)) return false;
  if (prompt_tokens_details !== null && !(prompt_tokens_details.cached_tokens <= prompt_tokens))
    return false;
  // A token that is shown is at least one byte of the response.
  if (completion_tokens <= responseBytes + bounds.unseenTokens) return true;
  return completion_tokens - toReasoning(usage) <= responseBytes + bounds.unseenTokens;
}

function toReasoning(usage: Usage): number {
  const { completion_tokens_details: details } = usage as {
    completion_tokens_details?: { reasoning_tokens?: unknown } | null;
  };
  const tokens = details?.reasoning_tokens;
  return typeof tokens === 'number' && tokens > 0 ? tokens : 0;
}
