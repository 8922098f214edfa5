// What a request may need before any engine has seen it, for limits to be held against: tokens as a fair
// guess, since what was guessed wrong is settled a moment later; money as a bound, since a budget is not
// to be passed.

import type { Amount } from '#accounts/limits/store.ts';
import { findOtherPart } from '#inference/content-parts.ts';
import { countPrompts, type Task } from '#inference/engine.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import { costOf } from './cost.ts';
import { toMaxTokens } from './plan.ts';

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
    tokens: Math.min(Math.ceil(bodyBytes / bytesPerToken), room) + completion,
    costNano: Math.max(...served.map(({ price }) => costOf(price, usage))),
  };
}

const isText = ({ kind, body }: Task) => kind !== 'chat' || findOtherPart(body.messages) === null;

function countChoices({ kind, body }: Task): number {
  return Math.max(body.n ?? 1, (kind === 'completion' ? body.best_of : null) ?? 1);
}
