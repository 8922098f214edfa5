// Decides which model and backends may serve a request before any engine sees it: the requested model, its
// fallback if the prompt is too long (Seed 1.5), or none. Counting tokens takes time, so it is only done for a
// request that is large enough to exceed a limit.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { type Cancellation, toSignal } from '#http/client-disconnect.ts';
import type { Backend, BackendList } from '#inference/backends/backend.ts';
import { findConstraint } from '#inference/constraint.ts';
import { describeOtherParts, findOtherPart } from '#inference/content-parts.ts';
import { type EngineError, type Task, toMaxTokens } from '#inference/engine.ts';
import { contextLengthExceeded, tooManyTokens, unsupportedContentType } from '#inference/errors.ts';
import type { Catalog, CatalogEntry } from '#inference/models/catalog.ts';
import type { TokenCounter } from '#inference/models/tokens.ts';
import type { ChatMessage } from '#inference/schema.ts';

export interface Plan {
  /** The model named in the response. */
  readonly served: CatalogEntry;
  /** The task as requested, with the served model's output cap if the request sets no maximum. */
  readonly task: Task;
  /** Length of the prompt; null if it was not counted. */
  readonly promptTokens: number | null;
  /** Backends of the served model that can't take this request: too small a window, or content other than text. */
  readonly unfit: ReadonlySet<Backend>;
}

interface PlannedRequest {
  readonly task: Task;
  /** Size of the request's body. */
  readonly bodyBytes: number;
  readonly signal: Cancellation;
}

export interface PlanParts {
  readonly catalog: Catalog;
  readonly counter: TokenCounter;
  readonly backends: BackendList;
}

/**
 * Tokens that most chat templates add at most. Unlike `maxTemplateTokens`, it bounds no cost: it decides what to count.
 */
const usualTemplateTokens = 64;
/** Larger than any context window. Counting further would only make the number in the error more exact. */
const maxCount = 4_000_000;
/** A slower count would only delay the request. The backend itself refuses a prompt that is too long. */
const countTimeoutMs = 5_000;

/** Bounds of the prompt's length in tokens. They are equal if it was counted. */
interface PromptLength {
  readonly min: number;
  readonly max: number;
}

/** Throws InferenceError, or an EngineError `rejected`, if no backend can take the request. */
export async function planRequest(
  parts: PlanParts,
  asked: CatalogEntry,
  request: PlannedRequest,
): Promise<Plan> {
  const { backends } = parts;
  const completion = toMaxTokens(request.task) ?? 0;
  // A token takes at least one byte of the request.
  const maxPrompt = request.bodyBytes + usualTemplateTokens;
  if (maxPrompt + completion > minContextLimit(backends, asked)) {
    return planLongRequest(parts, asked, request, maxPrompt);
  }
  const given = toServedTask(request.task, asked, fitsMaximum(request.task, asked));
  const task = withReadableParts(backends, asked, given);
  return { served: asked, task, promptTokens: null, unfit: findUnable(backends, asked, task) };
}

/** Tokens below which no rule of the model applies. */
function minContextLimit(backends: BackendList, entry: CatalogEntry): number {
  const { id, contextWindow, contextFallback } = entry;
  let min = Math.min(contextWindow, contextFallback?.above ?? contextWindow);
  for (const backend of backends.forModel(id)) {
    if (backend.contextWindow !== null) min = Math.min(min, backend.contextWindow);
  }
  return min;
}

/**
 * Local engines take only text, and complete it only at its end. A kind of server may not be able to enforce the form
 * that the output must have.
 */
function findUnable(backends: BackendList, { id }: CatalogEntry, task: Task): Set<Backend> {
  const part = task.kind === 'chat' ? findOtherPart(task.body.messages) : null;
  const hasSuffix = task.kind === 'completion' && (task.body.suffix ?? '') !== '';
  const isConstrained = findConstraint(task.body) !== null;
  if (part === null && !hasSuffix && !isConstrained) return new Set();
  const all = backends.forModel(id);
  // The router says so.
  if (all.length === 0) return new Set();
  const textOnly = all.filter(({ kind }) => kind !== 'upstream' && (part !== null || hasSuffix));
  if (textOnly.length === all.length && part !== null)
    throw unsupportedContentType(part.place, part.type);
  // The engine knows whether its model has the tokens for a suffix.
  const unable = new Set(textOnly.length < all.length ? textOnly : []);
  if (!isConstrained) return unable;
  let refusal: EngineError | null = null;
  for (const backend of all) {
    const own = backend.engine.refusalOf?.(task) ?? null;
    if (own !== null) unable.add(backend);
    refusal ??= own;
  }
  if (refusal !== null && unable.size === all.length) throw refusal;
  return unable;
}

/** Local engines take only text. */
function withReadableParts(backends: BackendList, { id }: CatalogEntry, task: Task): Task {
  if (task.kind !== 'chat' || task.describesMedia !== true) return task;
  if (backends.forModel(id).some(({ kind }) => kind === 'upstream')) return task;
  return { ...task, body: { ...task.body, messages: describeOtherParts(task.body.messages) } };
}

/** Plans a request that may exceed a limit, which takes a count of its tokens. */
async function planLongRequest(
  parts: PlanParts,
  asked: CatalogEntry,
  request: PlannedRequest,
  maxPrompt: number,
): Promise<Plan> {
  const isFitted = fitsMaximum(request.task, asked);
  // The long body was just parsed and is now copied for the count: let other requests run in between.
  await yieldToEventLoop();
  const completion = isFitted ? null : toMaxTokens(request.task);
  const { served, length } = await findServed(parts, asked, request, { maxPrompt, completion });
  const given = toServedTask(request.task, served, isFitted);
  const task = withReadableParts(parts.backends, served, given);
  const unable = findUnable(parts.backends, served, task);
  const able = parts.backends.forModel(served.id).filter((backend) => !unable.has(backend));
  const needed = length.min + (completion ?? 1);
  const promptTokens = length.min === length.max ? length.min : null;
  const isSmall = (min: number) => (backend: Backend) => windowOf(served, backend) < min;
  const windows = able.map((backend) => windowOf(served, backend));
  const window = able.length === 0 ? served.contextWindow : Math.max(...windows);
  if (window < needed) {
    const shorter = toShorter(request.task, window / needed);
    if (shorter !== null)
      return planLongRequest(parts, asked, { ...request, task: shorter }, maxPrompt);
    const param = task.kind === 'chat' ? 'messages' : 'prompt';
    throw contextLengthExceeded(param, { window, prompt: promptTokens, completion });
  }
  const fitted = isFitted ? withRoom(task, window - length.max, served) : task;
  const small = able.filter(isSmall(length.min + (toMaxTokens(fitted) ?? 1)));
  return { served, task: fitted, promptTokens, unfit: unable.union(new Set(small)) };
}

/** A margin, because bytes are not tokens. With it, a conversation is counted a few times at most. */
const shareKept = 0.9;

function toShorter(task: Task, share: number): Task | null {
  if (task.kind !== 'chat' || task.dropsOldest !== true) return null;
  const messages = dropOldest(task.body.messages, share * shareKept);
  return messages && { ...task, body: { ...task.body, messages } };
}

const fitsMaximum = (task: Task, { fitMaxTokens }: CatalogEntry) =>
  task.kind === 'chat' && (task.fitsMaximum === true || fitMaxTokens);

/**
 * Reduces the maximum to the room that the prompt leaves. A prompt of unknown length may leave none: then the backend
 * generates until its window is full.
 */
function withRoom(task: Task, room: number, { maxOutputTokens }: CatalogEntry): Task {
  const asked = toMaxTokens(task);
  if (asked === null || asked <= room) return task;
  return withMaxTokens(task, room > 0 ? room : maxOutputTokens);
}

/** Follows the context fallbacks. The configuration has no cycles, so each step leads to another id. */
async function findServed(
  parts: PlanParts,
  asked: CatalogEntry,
  request: PlannedRequest,
  { maxPrompt, completion }: { maxPrompt: number; completion: number | null },
): Promise<{ served: CatalogEntry; length: PromptLength }> {
  let served = asked;
  let length = await measurePrompt(parts, served, request, maxPrompt);
  for (;;) {
    const next = findFallback(parts.catalog, served, length, completion);
    if (next === undefined) return { served, length };
    const isSameCount = next.vocabulary === served.vocabulary && next.vocabulary !== 'other';
    served = next;
    if (!isSameCount) length = await measurePrompt(parts, served, request, maxPrompt);
  }
}

function findFallback(
  catalog: Catalog,
  { contextFallback }: CatalogEntry,
  length: PromptLength,
  completion: number | null,
): CatalogEntry | undefined {
  if (contextFallback === null) return undefined;
  // If the length is unknown, the model with the larger window is the safe choice.
  const isOver = length.max + (completion ?? 0) > contextFallback.above;
  return isOver ? catalog.find(contextFallback.to) : undefined;
}

async function measurePrompt(
  parts: PlanParts,
  entry: CatalogEntry,
  { task, signal }: PlannedRequest,
  maxPrompt: number,
): Promise<PromptLength> {
  const tokens =
    entry.vocabulary === 'other'
      ? await countByBackend(parts.backends, entry, task, signal)
      : await parts.counter.count(task, entry.vocabulary, maxCount);
  if (tokens === null) return { min: 0, max: maxPrompt };
  const { truncate_prompt_tokens: kept } = task.body as { truncate_prompt_tokens?: unknown };
  if (typeof kept !== 'number') return { min: tokens, max: tokens };
  // vLLM truncates a longer prompt to this many tokens, or with -1 to its context window.
  const length = Math.min(tokens, kept);
  return kept < 0 ? { min: 0, max: tokens } : { min: length, max: length };
}

/** The count of the first backend that can; null if none does in time. */
export async function countByBackend(
  backends: BackendList,
  { id }: CatalogEntry,
  task: Task,
  client: Cancellation,
): Promise<number | null> {
  const signal = AbortSignal.any([toSignal(client), AbortSignal.timeout(countTimeoutMs)]);
  for (const { engine, health, draining } of backends.forModel(id)) {
    if (draining || health.state() === 'ejected') continue;
    try {
      const tokens = await engine.countPromptTokens(task, signal);
      if (tokens !== null) return tokens;
    } catch (error) {
      if (client.aborted) throw error;
    }
  }
  return null;
}

const windowOf = ({ contextWindow }: CatalogEntry, backend: Backend) =>
  Math.min(contextWindow, backend.contextWindow ?? contextWindow);

/** The task with the served model's output cap and think tags. */
function toServedTask(given: Task, served: CatalogEntry, isFitted: boolean): Task {
  const task = withOutputCap(given, served, isFitted);
  if (task.kind !== 'chat' || served.thinkTags === 'split') return task;
  const { chat_template_kwargs: kwargs } = task.body as { chat_template_kwargs?: unknown };
  const isOff = (kwargs as { enable_thinking?: unknown } | null)?.enable_thinking === false;
  const isUnopened = task.body.continue_final_message === true || isOff;
  return served.thinkTags === 'opened' && isUnopened
    ? task
    : { ...task, thinkTags: served.thinkTags };
}

function withMaxTokens(task: Task, max: number | null): Task {
  const isNew = task.kind === 'chat' && task.body.max_completion_tokens != null;
  const name = isNew ? 'max_completion_tokens' : 'max_tokens';
  // The older member would otherwise be what some servers go by.
  const older = isNew && task.body.max_tokens != null && { max_tokens: max };
  // The compiler can't see that the spread keeps each kind with its own body.
  return { ...task, body: { ...task.body, ...older, [name]: max } } as Task;
}

function withOutputCap(task: Task, entry: CatalogEntry, isFitted: boolean): Task {
  const { id, maxOutputTokens: cap } = entry;
  if (cap === null) return task;
  const asked = toMaxTokens(task);
  if (asked === null || (isFitted && asked > cap)) return withMaxTokens(task, cap);
  if (asked > cap) {
    const isNew = task.kind === 'chat' && task.body.max_completion_tokens != null;
    throw tooManyTokens(isNew ? 'max_completion_tokens' : 'max_tokens', { asked, cap, model: id });
  }
  return task;
}

/**
 * Keeps the leading instructions and about this share of the rest, the newest messages. An output stays with its call.
 * Returns null if there is nothing left to drop.
 */
export function dropOldest(messages: readonly ChatMessage[], share: number): ChatMessage[] | null {
  const isInstruction = ({ role }: ChatMessage) => role === 'system' || role === 'developer';
  const begun = messages.findIndex((message) => !isInstruction(message));
  const start = begun < 0 ? messages.length : begun;
  const lengths = messages.map((message) => JSON.stringify(message).length);
  const total = lengths.slice(start).reduce((sum, length) => sum + length, 0);
  let dropped = 0;
  let at = start;
  while (at < messages.length && (at === start || dropped < total * (1 - share))) {
    dropped += lengths[at] as number;
    at++;
    // An output whose call is gone would be refused.
    while (messages[at]?.role === 'tool') {
      dropped += lengths[at] as number;
      at++;
    }
  }
  return at < messages.length ? [...messages.slice(0, start), ...messages.slice(at)] : null;
}
