// What a request costs, in whole billionths of a US dollar: a dollar per million tokens is 1,000 of them
// per token, so that sums are exact.

import type { Usage } from '#inference/engine.ts';

/** US dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** For what an engine had read before; like input unless given. */
  readonly cached?: number;
}

const nanoPerToken = 1000;

export function costOf(price: Price, usage: Usage | null): number {
  if (usage === null) return 0;
  const cached = Math.min(usage.prompt_tokens_details?.cached_tokens ?? 0, usage.prompt_tokens);
  const dollars =
    (usage.prompt_tokens - cached) * price.input +
    cached * (price.cached ?? price.input) +
    usage.completion_tokens * price.output;
  return Math.round(dollars * nanoPerToken);
}
