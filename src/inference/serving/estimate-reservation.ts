// Tokens and money to reserve for a request before any engine sees it. Tokens are a fair estimate, because a wrong
// one is settled moments later; money is an upper bound, because a budget must never be exceeded.

import type { Amount } from '#accounts/limits/store.ts';
import { isText } from '#inference/content-parts.ts';
import {
  countChoices,
  countPrompts,
  newUsage,
  type Task,
  toMaxTokens,
  type Usage,
} from '#inference/engine.ts';
import type { CatalogEntry, Price } from '#inference/models/catalog.ts';

/** Completion tokens reserved per choice if the request sets no maximum. Most responses are shorter. */
const defaultCompletionTokens = 1024;
const bytesPerToken = 4;
/** Maximum tokens that a chat template adds to the bytes of the request. */
const maxTemplateTokens = 256;

/** `candidates` are the models that may serve the request. */
export function estimateReservation(
  task: Task,
  bodyBytes: number,
  candidates: readonly CatalogEntry[],
): Amount {
  const sequences = countPrompts(task);
  const choices = sequences * countChoices(task);
  const named = toMaxTokens(task);
  const window = Math.max(...candidates.map((entry) => entry.contextWindow));
  const maxOutput = Math.max(...candidates.map((one) => one.maxOutputTokens ?? one.contextWindow));
  const completion = Math.min(named ?? defaultCompletionTokens, maxOutput) * choices;
  const bytes = bodyBytes + maxTemplateTokens * sequences;
  const maxPrompt = window * sequences;
  const maxUsage = newUsage(
    // A token of text takes at least one byte of the request. An image may be any number of tokens, and its body
    // may hold only its URL.
    bytes < maxPrompt && isText(task) ? bytes : maxPrompt,
    Math.min(named ?? maxOutput, maxOutput) * choices,
  );
  return {
    tokens: Math.min(estimatePrompt(bodyBytes), maxPrompt) + completion,
    costNano: Math.max(...candidates.map(({ price }) => costOf(price, maxUsage))),
  };
}

/**
 * Usage charged if a response was cut off before its backend reported any: the tokens that were reserved. It never
 * costs more than was reserved of a budget.
 */
export function toReservedUsage(task: Task, bodyBytes: number, served: CatalogEntry): Usage {
  const sequences = countPrompts(task);
  const maxOutput = served.maxOutputTokens ?? served.contextWindow;
  const perChoice = Math.min(toMaxTokens(task) ?? defaultCompletionTokens, maxOutput);
  const promptTokens = Math.min(estimatePrompt(bodyBytes), served.contextWindow * sequences);
  return newUsage(promptTokens, perChoice * sequences * countChoices(task));
}

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

const estimatePrompt = (bodyBytes: number) => Math.ceil(bodyBytes / bytesPerToken);
