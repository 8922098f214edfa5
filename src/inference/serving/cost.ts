// What a request costs: its tokens at the prices of the model that served it.

import type { Price } from '#inference/models/catalog.ts';
import type { Usage } from '#inference/wire/response.ts';

const nanoPerToken = 1000;

/**
 * Cost in whole billionths of a US dollar (nano-dollars), so that sums are exact: a price of one dollar per million
 * tokens is 1,000 nano-dollars per token.
 */
export function costOf(price: Price, usage: Usage | null): number {
  if (usage === null) return 0;
  const cached = Math.min(usage.prompt_tokens_details?.cached_tokens ?? 0, usage.prompt_tokens);
  const dollarsPerMillion =
    (usage.prompt_tokens - cached) * price.input +
    cached * (price.cached ?? price.input) +
    usage.completion_tokens * price.output;
  return Math.round(dollarsPerMillion * nanoPerToken);
}
