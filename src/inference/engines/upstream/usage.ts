// Token counts of upstream servers, in the form of our contract. They are billed, so a count that
// exceeds what was requested, or what the response can hold, is discarded. The tokens are counted
// here instead, as if none were reported.

import { isText } from '#inference/content-parts.ts';
import {
  countChoices,
  countPrompts,
  maxTemplateTokens,
  type Task,
  toMaxTokens,
} from '#inference/engine.ts';
import { newUsage, type Usage, type WireEvents, withCounts } from '#inference/wire/response.ts';
import { textOf } from '#lib/json-members.ts';
import { fromBytes } from '#lib/memory/byte-string.ts';

/**
 * Returns null if there are no counts. A count that is not a non-negative integer is NaN, which `UsageCheck`
 * refuses.
 */
export function toUsage(given: unknown): Usage | null {
  if (typeof given !== 'object' || given === null) return null;
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, ...more } =
    given as { [name: string]: unknown };
  const reasoning = toCount(
    // SGLang has no details.
    (more.completion_tokens_details as Details)?.reasoning_tokens ?? more.reasoning_tokens ?? 0,
  );
  if (prompt_tokens == null && completion_tokens == null) return null;
  const prompt = toCount(prompt_tokens ?? 0);
  const completion = toCount(completion_tokens ?? 0);
  const details = prompt_tokens_details as { cached_tokens?: unknown } | null | undefined;
  const cached = details?.cached_tokens;
  return {
    // Further members that the server adds.
    ...more,
    ...((more.completion_tokens_details != null || reasoning > 0) && {
      completion_tokens_details: {
        ...(more.completion_tokens_details as Details),
        // A count that can't be true is not worth failing over: it is not billed.
        reasoning_tokens: reasoning <= completion ? reasoning : 0,
      },
    }),
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: toCount(total_tokens ?? prompt + completion),
    prompt_tokens_details: cached == null ? null : { ...details, cached_tokens: toCount(cached) },
  };
}

type Details = { reasoning_tokens?: unknown } | null | undefined;

const maxChoices = 1024;

/**
 * Adds up the usage of a response with several choices, `n` per prompt. Some servers report the total at the end.
 * llama-server reports each choice separately: with its last event, or one after another at the end.
 */
export class Tally {
  readonly #n: number;
  readonly #byChoice = new Map<number, Usage>();
  #alone: Usage | null = null;

  constructor(n: number) {
    this.#n = n;
  }

  /** Returns the usage known so far. `index` is null for counts that came without a choice. */
  add(counts: Usage, index: number | null): Usage {
    if (index !== null) {
      if (this.#byChoice.size < maxChoices || this.#byChoice.has(index))
        this.#byChoice.set(index, counts);
      return this.#perPrompt([...this.#byChoice.values()].reduce(plus));
    }
    // If each choice was counted already, these counts are their total.
    if (this.#byChoice.size > 0) return counts;
    this.#alone = this.#alone === null ? counts : plus(this.#alone, counts);
    return this.#alone === counts ? counts : this.#perPrompt(this.#alone);
  }

  /** Corrects the prompt's count, which was reported with each choice. */
  #perPrompt(sum: Usage): Usage {
    const prompt_tokens = Math.round(sum.prompt_tokens / this.#n);
    return withCounts(sum, prompt_tokens);
  }
}

const plus = (sum: Usage, more: Usage): Usage =>
  withCounts(
    sum,
    sum.prompt_tokens + more.prompt_tokens,
    sum.completion_tokens + more.completion_tokens,
  );

/** Usage of a response whose server reported none. The prompt's count is unknown here: the caller has its estimate. */
export const generatedOnly = (tokens: number): Usage => newUsage(0, tokens);

const toCount = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : Number.NaN;

export interface CountBounds {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Generated tokens that may have left no byte in the response. Infinity if its size says nothing. */
  readonly unseenTokens: number;
}

/** Implausible counts, and the bounds they exceeded. A count is NaN if it was not a non-negative integer. */
export interface ImplausibleCounts {
  readonly reported: Usage;
  /** Absent if the counts would only cost more than was reserved. */
  readonly bounds?: CountBounds;
  readonly responseBytes?: number;
}

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
  const bytes = isText(task) ? requestBytes + maxTemplateTokens * prompts : room;
  return {
    promptTokens: Math.min(room, bytes),
    completionTokens: (Math.min(named ?? contextWindow, contextWindow) + endTokens) * choices,
    unseenTokens: mayHide(task) ? Number.POSITIVE_INFINITY : unseenPerChoice * choices,
  };
}

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

const toReasoning = ({ completion_tokens_details: details }: Usage) =>
  details?.reasoning_tokens ?? 0;

interface Part {
  content?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  refusal?: unknown;
  tool_calls?: unknown;
}

/** The generated text of the choices of a response or a chunk. */
export function toText(choices: readonly unknown[]): string {
  let text = '';
  for (const choice of choices as { text?: unknown; message?: Part; delta?: Part }[]) {
    const part = choice?.message ?? choice?.delta ?? {};
    text += textOf(choice?.text) + textOf(part.reasoning_content ?? part.reasoning);
    text += textOf(part.content) + textOf(part.refusal);
    const calls = Array.isArray(part.tool_calls) ? part.tool_calls : [];
    for (const call of calls)
      text += textOf(call?.function?.name) + textOf(call?.function?.arguments);
  }
  return text;
}

/** Counts the tokens of a text; null if they can't be counted. Never fails. */
export type CountText = (text: string) => number | null | Promise<number | null>;

/** Maximum bytes buffered of one stream, and the maximum once all streams together have used their room. */
const maxStreamBytes = 32 * 1024;
const maxCrowdedStreamBytes = 1024;
/** Bytes buffered of all streams of a backend, above which new streams buffer less. */
const maxSharedBytes = 1024 * 1024;

/**
 * Events are parsed only if the total is needed. The start of a stream is buffered and counted, by `countText` or else
 * by the server, and the rest is assumed to have as many tokens per event. Without a counter each event counts as one
 * token, which is what most servers send unless they are busy.
 */
export function createTokenCounts(
  countText: CountText | undefined,
  countByServer: CountText | null = null,
): () => GeneratedCount {
  const counters: Counters = { here: countText ?? null, there: countByServer };
  const room: Room = { usedBytes: 0 };
  return () => new GeneratedCount(counters, room);
}

interface Counters {
  readonly here: CountText | null;
  readonly there: CountText | null;
}

interface Room {
  /** Bytes buffered of all streams. */
  usedBytes: number;
}

export class GeneratedCount {
  readonly #counters: Counters;
  readonly #room: Room;
  #kept: WireEvents[] = [];
  #keptBytes = 0;
  #keptHolding = 0;
  #holding = 0;
  #isKeeping: boolean;

  constructor(counters: Counters, room: Room) {
    this.#counters = counters;
    this.#room = room;
    this.#isKeeping = counters.here !== null || counters.there !== null;
  }

  /** Adds events sent to the client. `holding` is how many of them hold generated text. */
  add(events: WireEvents, holding: number): void {
    this.#holding += holding;
    if (!this.#isKeeping || events === '') return;
    this.#kept.push(events);
    this.#keptHolding += holding;
    this.#keptBytes += events.length;
    this.#room.usedBytes += events.length;
    this.#isKeeping =
      this.#keptBytes <
      (this.#room.usedBytes < maxSharedBytes ? maxStreamBytes : maxCrowdedStreamBytes);
  }

  /** Events that hold generated text: about as many as tokens, and known without counting. */
  soFar(): number {
    return this.#holding;
  }

  /** Tokens so far. The server may be asked to count them if `canAskServer` is set. Never fails. */
  async total(canAskServer: boolean): Promise<number> {
    const [holding, kept] = [this.#holding, this.#keptHolding];
    const { here, there } = this.#counters;
    const countText = here ?? (canAskServer ? there : null);
    if (countText === null || kept === 0) return holding;
    const events = fromBytes(this.#kept.join('')).split('\n\n').slice(0, -1);
    const counted = await countText(events.map(readEvent).join(''));
    return counted === null ? holding : Math.round((counted * holding) / kept);
  }

  /** Releases the buffered events. Must be called in the end, and may be while `total` is pending. */
  forget(): void {
    this.#isKeeping = false;
    this.#room.usedBytes -= this.#keptBytes;
    this.#kept = [];
    this.#keptBytes = 0;
    this.#keptHolding = 0;
  }
}

/** Most events were served without being parsed, so one may turn out to be invalid here. */
function readEvent(event: string): string {
  try {
    return toText(JSON.parse(event.slice('data: '.length)).choices);
  } catch {
    return '';
  }
}
