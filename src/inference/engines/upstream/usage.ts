// Converts the token counts of upstream servers to the form of our contract.

import type { Usage } from '#inference/engine.ts';

/**
 * Returns null if there are no counts. A count that is not a non-negative integer is NaN, which `UsageCheck`
 * refuses.
 */
export function toUsage(given: unknown): Usage | null {
  if (typeof given !== 'object' || given === null) return null;
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, ...more } =
    given as { [name: string]: unknown };
  if (prompt_tokens == null && completion_tokens == null) return null;
  const prompt = toCount(prompt_tokens ?? 0);
  const completion = toCount(completion_tokens ?? 0);
  const details = prompt_tokens_details as { cached_tokens?: unknown } | null | undefined;
  const cached = details?.cached_tokens;
  return {
    // Further details, such as the number of reasoning tokens.
    ...more,
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: toCount(total_tokens ?? prompt + completion),
    prompt_tokens_details: cached == null ? null : { ...details, cached_tokens: toCount(cached) },
  };
}

const mostChoices = 1024;

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
      if (this.#byChoice.size < mostChoices || this.#byChoice.has(index))
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
    return { ...sum, prompt_tokens, total_tokens: prompt_tokens + sum.completion_tokens };
  }
}

function plus(sum: Usage, more: Usage): Usage {
  const prompt_tokens = sum.prompt_tokens + more.prompt_tokens;
  const completion_tokens = sum.completion_tokens + more.completion_tokens;
  const total_tokens = prompt_tokens + completion_tokens;
  return { ...sum, prompt_tokens, completion_tokens, total_tokens };
}

/**
 * Usage of a response whose server reported none. The prompt's count is unknown here: the caller has its estimate.
 */
export function generatedOnly(tokens: number): Usage {
  return {
    prompt_tokens: 0,
    completion_tokens: tokens,
    total_tokens: tokens,
    prompt_tokens_details: null,
  };
}

const toCount = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : Number.NaN;
