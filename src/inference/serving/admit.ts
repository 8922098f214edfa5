// Admits a request: finds its model and reserves what it may need against the limits of its caller.
// Tokens are a fair estimate, because a wrong one is settled moments later; money is an upper
// bound, because a budget must never be exceeded. It stands apart because a background response is
// admitted when it arrives and served later.

import type { RequestLimiter, Reservation } from '#accounts/limits/request-limiter.ts';
import type { Amount } from '#accounts/limits/store.ts';
import { isText } from '#inference/content-parts.ts';
import {
  countChoices,
  countPrompts,
  maxTemplateTokens,
  type Task,
  toMaxTokens,
} from '#inference/engine.ts';
import { modelNotFound, modelNotSupported } from '#inference/errors.ts';
import type { Catalog, CatalogEntry } from '#inference/models/catalog.ts';
import type { InferenceRequest } from '#inference/request.ts';
import { newUsage, type Usage } from '#inference/wire/response.ts';
import { costOf } from './cost.ts';
import type { Computation, ResponseFormat } from './response-format.ts';

export interface AdmitParts {
  readonly catalog: Catalog;
  readonly limits: RequestLimiter;
}

export interface Admission {
  /** The model that was requested. */
  readonly asked: CatalogEntry;
  readonly reservation: Reservation;
}

export type AdmittedPart = Pick<
  InferenceRequest,
  'caller' | 'bodyBytes' | 'background' | 'reservation'
>;

/** Throws InferenceError or LimitReached. */
export async function admit(
  { catalog, limits }: AdmitParts,
  { caller, bodyBytes, background, reservation }: AdmittedPart,
  task: Task,
  { computation }: Pick<ResponseFormat, 'computation'>,
): Promise<Admission> {
  const { model } = task.body;
  const asked = catalog.find(model);
  if (asked === undefined) throw modelNotFound(model);
  checkKind(asked, computation);
  if (reservation !== undefined) return { asked, reservation };
  const bytes = bodyBytes + (computation?.repeatedBytes ?? 0);
  const amount = estimateReservation(task, bytes, candidatesOf(catalog, asked));
  const costNano = Math.ceil(amount.costNano * (background?.priceFactor ?? 1));
  return { asked, reservation: await limits.reserve(caller, { ...amount, costNano }) };
}

/** The requested model and the fallbacks that may serve the request in its place. */
function candidatesOf(catalog: Catalog, asked: CatalogEntry): CatalogEntry[] {
  const all: CatalogEntry[] = [];
  let next: CatalogEntry | undefined = asked;
  while (next !== undefined && !all.includes(next)) {
    all.push(next);
    next = next.contextFallback === null ? undefined : catalog.find(next.contextFallback.to);
  }
  return all;
}

/** Throws InferenceError if the operator has declared the model to be of another kind. */
function checkKind({ id, kind }: CatalogEntry, computation: Computation | undefined): void {
  const needed = computation === undefined ? 'chat' : computation.modelKind;
  if (kind !== null && needed !== null && kind !== needed) throw modelNotSupported(id, kind);
}

/** Completion tokens reserved per choice if the request sets no maximum. Most responses are shorter. */
const defaultCompletionTokens = 1024;
const bytesPerToken = 4;

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

const estimatePrompt = (bodyBytes: number) => Math.ceil(bodyBytes / bytesPerToken);
