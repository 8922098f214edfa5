// What a request may need before any engine has seen it, for limits to be held against: tokens as a fair
// guess, since what was guessed wrong is settled a moment later; money as a bound, since a budget is not
// to be passed.

import type { Amount } from '#accounts/limits/store.ts';
import { findOtherPart } from '#inference/content-parts.ts';
import {
  countChoices,
  countPrompts,
  type Task,
  toMaxTokens,
  type Usage,
} from '#inference/engine.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import { costOf } from './cost.ts';

/** Completion tokens of a choice that are reserved when none were named. Most answers are shorter. */
const unnamedCompletion = 1024;
const bytesPerToken = 4;
/** What a template may add at most that is in no byte of the request. */
const templateTokens = 256;

export function toAsk(task: Task, bodyBytes: number, served: readonly CatalogEntry[]): Amount {
  const sequences = countPrompts(task);
  const choices = sequences * countChoices(task);
  const named = toMaxTokens(task);
  const window = Math.max(...served.map((entry) => entry.contextWindow));
  const longest = Math.max(...served.map((one) => one.maxOutputTokens ?? one.contextWindow));
  const completion = Math.min(named ?? unnamedCompletion, longest) * choices;
  const bytes = bodyBytes + templateTokens * sequences;
  const room = window * sequences;
  const most = {
    // A token of text is at least one byte of the request; a picture may be any number, and be given by its address.
    prompt_tokens: bytes < room && isText(task) ? bytes : room,
    completion_tokens: Math.min(named ?? longest, longest) * choices,
  };
  const usage = { ...most, total_tokens: 0, prompt_tokens_details: null };
  return {
    tokens: Math.min(estimatePrompt(bodyBytes), room) + completion,
    costNano: Math.max(...served.map(({ price }) => costOf(price, usage))),
  };
}

/**
 * What a request is charged if its response was cut off and its backend had not said what it used: the tokens
 * that were reserved for it. Costs at most what was held of a budget.
 */
export function toReserved(task: Task, bodyBytes: number, served: CatalogEntry): Usage {
  const sequences = countPrompts(task);
  const longest = served.maxOutputTokens ?? served.contextWindow;
  const each = Math.min(toMaxTokens(task) ?? unnamedCompletion, longest);
  const prompt_tokens = Math.min(estimatePrompt(bodyBytes), served.contextWindow * sequences);
  const completion_tokens = each * sequences * countChoices(task);
  const total_tokens = prompt_tokens + completion_tokens;
  return { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details: null };
}

const estimatePrompt = (bodyBytes: number) => Math.ceil(bodyBytes / bytesPerToken);

const isText = ({ kind, body }: Task) => kind !== 'chat' || findOtherPart(body.messages) === null;
