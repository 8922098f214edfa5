// Token counts as upstream servers give them, in the form of our contract.

import type { Usage } from '../../engine.ts';

/** Null when it holds no counts. */
export function toUsage(given: unknown): Usage | null {
  if (typeof given !== 'object' || given === null) return null;
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, ...more } =
    given as { [name: string]: unknown };
  if (!isCount(prompt_tokens) && !isCount(completion_tokens)) return null;
  const prompt = isCount(prompt_tokens) ? prompt_tokens : 0;
  const completion = isCount(completion_tokens) ? completion_tokens : 0;
  const details = prompt_tokens_details as { cached_tokens?: unknown } | null | undefined;
  const cached = details?.cached_tokens;
  return {
    // Such as how many of them were thoughts.
    ...more,
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: isCount(total_tokens) ? total_tokens : prompt + completion,
    prompt_tokens_details: isCount(cached) ? { ...details, cached_tokens: cached } : null,
  };
}

/** Of one answer's choices that were counted one by one, `n` of them for each prompt. */
export function sumOf(counted: readonly Usage[], n: number): Usage {
  const [first, ...others] = counted as [Usage, ...Usage[]];
  if (others.length === 0) return first;
  const sum = (of: (usage: Usage) => number) =>
    counted.reduce((total, usage) => total + of(usage), 0);
  const prompt_tokens = Math.round(sum((usage) => usage.prompt_tokens) / n);
  const completion_tokens = sum((usage) => usage.completion_tokens);
  return {
    ...first,
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
  };
}

/** For answers whose server gave no counts. The prompt's are unknown here: the caller has its estimate. */
export function generatedOnly(tokens: number): Usage {
  return {
    prompt_tokens: 0,
    completion_tokens: tokens,
    total_tokens: tokens,
    prompt_tokens_details: null,
  };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
