// Decides who serves a request before any engine sees it: the model asked for, its fallback when the
// context is too long (seed 1.5), or nobody, in numbers. A count costs time, so it is only made when the
// request has so many bytes that it could matter.

import { setImmediate as othersTurn } from 'node:timers/promises';
import { type Cancellation, toSignal } from '#http/client-disconnect.ts';
import type { Backend, BackendList } from '#inference/backends/backend.ts';
import { findOtherPart } from '#inference/content-parts.ts';
import { type Task, toMaxTokens } from '#inference/engine.ts';
import { contextLengthExceeded, tooManyTokens, unsupportedContentType } from '#inference/errors.ts';
import type { Catalog, CatalogEntry } from '#inference/models/catalog.ts';
import type { TokenCounter } from '#inference/models/tokens.ts';

export interface Plan {
  /** Whose name the answer carries. */
  readonly served: CatalogEntry;
  /** As asked, but for the served model's output cap where no length was named. */
  readonly task: Task;
  /** The prompt's length, where it was counted. */
  readonly promptTokens: number | null;
  /** Backends of the served model that can't take this request: their window is too small, or it is not text. */
  readonly unfit: ReadonlySet<Backend>;
}

export interface PlannedRequest {
  readonly task: Task;
  /** Of the request's body. */
  readonly bodyBytes: number;
  readonly signal: Cancellation;
}

export type Planner = (asked: CatalogEntry, request: PlannedRequest) => Plan | Promise<Plan>;

/** What a template may add that is in no byte of the request. */
const templateTokens = 64;
/** Longer than any window there is: counting further would only make the refusal's number more exact. */
const countLimit = 4_000_000;
/** A server that counts no faster would only hold the request up; it refuses by itself what does not fit. */
const countMs = 5_000;

const none: ReadonlySet<Backend> = new Set();

/** Between these the prompt's length lies; they are equal when it was counted. */
interface Length {
  readonly least: number;
  readonly most: number;
}

export function createPlanner(
  catalog: Catalog,
  counter: TokenCounter,
  backends: BackendList,
): Planner {
  return (asked, request) => {
    const completion = toMaxTokens(request.task) ?? 0;
    // A token is at least one byte of the request.
    const most = request.bodyBytes + templateTokens;
    if (most + completion <= smallestLimit(asked)) {
      const task = withOutputCap(request.task, asked);
      return { served: asked, task, promptTokens: null, unfit: findUnable(asked, task) };
    }
    return decide(asked, request, most);
  };

  /** Below this, no rule of the model can apply. */
  function smallestLimit({ id, contextWindow, contextFallback }: CatalogEntry): number {
    let least = Math.min(contextWindow, contextFallback?.above ?? contextWindow);
    for (const backend of backends.forModel(id)) {
      if (backend.contextWindow !== null) least = Math.min(least, backend.contextWindow);
    }
    return least;
  }

  /** Engines on this machine read and write text alone, from its beginning. */
  function findUnable({ id }: CatalogEntry, task: Task): ReadonlySet<Backend> {
    const part = task.kind === 'chat' ? findOtherPart(task.body.messages) : null;
    const hasSuffix = task.kind === 'completion' && (task.body.suffix ?? '') !== '';
    if (part === null && !hasSuffix) return none;
    const all = backends.forModel(id);
    const local = all.filter(({ kind }) => kind !== 'upstream');
    if (local.length < all.length) return new Set(local);
    if (part !== null) throw unsupportedContentType(part.place, part.type);
    // The engine knows best whether its model has the tokens for that.
    return none;
  }

  async function decide(asked: CatalogEntry, request: PlannedRequest, most: number): Promise<Plan> {
    const completion = toMaxTokens(request.task);
    let served = asked;
    // A long one has just been read, and is now copied to be counted.
    await othersTurn();
    let length = await measure(served, request, most);
    // The configuration has no circles, and each step goes to another id.
    for (let next = fallbackOf(served, length, completion); next !== undefined; ) {
      const isSameCount = next.vocabulary === served.vocabulary && next.vocabulary !== 'other';
      served = next;
      if (!isSameCount) length = await measure(served, request, most);
      next = fallbackOf(served, length, completion);
    }
    const task = withOutputCap(request.task, served);
    const unable = findUnable(served, task);
    const able = backends.forModel(served.id).filter((backend) => !unable.has(backend));
    const needed = length.least + (completion ?? 1);
    const promptTokens = length.least === length.most ? length.least : null;
    const small = able.filter((backend) => windowOf(served, backend) < needed);
    if (small.length === able.length) {
      const window = Math.max(...able.map((backend) => windowOf(served, backend)));
      const param = task.kind === 'chat' ? 'messages' : 'prompt';
      throw contextLengthExceeded(param, { window, prompt: promptTokens, completion });
    }
    const unfit = small.length === 0 ? unable : new Set([...unable, ...small]);
    return { served, task, promptTokens, unfit };
  }

  function fallbackOf(entry: CatalogEntry, length: Length, completion: number | null) {
    const { contextFallback } = entry;
    if (contextFallback === null) return undefined;
    // Where the length is not known, the model that can hold more is the safe one.
    const isOver = length.most + (completion ?? 0) > contextFallback.above;
    return isOver ? catalog.find(contextFallback.to) : undefined;
  }

  async function measure(
    entry: CatalogEntry,
    request: PlannedRequest,
    most: number,
  ): Promise<Length> {
    const { task, signal } = request;
    const tokens =
      entry.vocabulary === 'other'
        ? await countByBackend(entry, task, signal)
        : await counter.count(task, entry.vocabulary, countLimit);
    if (tokens === null) return { least: 0, most };
    const { truncate_prompt_tokens: kept } = task.body as { truncate_prompt_tokens?: unknown };
    if (typeof kept !== 'number') return { least: tokens, most: tokens };
    // vLLM cuts a longer prompt to these, or with -1 to what it can hold.
    const length = Math.min(tokens, kept);
    return kept < 0 ? { least: 0, most: tokens } : { least: length, most: length };
  }

  /** By the first that can; null where nobody does in time. */
  async function countByBackend({ id }: CatalogEntry, task: Task, client: Cancellation) {
    const signal = AbortSignal.any([toSignal(client), AbortSignal.timeout(countMs)]);
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
}

const windowOf = ({ contextWindow }: CatalogEntry, backend: Backend) =>
  Math.min(contextWindow, backend.contextWindow ?? contextWindow);

function withOutputCap(task: Task, { id, maxOutputTokens: cap }: CatalogEntry): Task {
  if (cap === null) return task;
  const asked = toMaxTokens(task);
  if (asked === null) {
    // Each kind with its own body: the compiler can't see that the spread keeps them together.
    return { ...task, body: { ...task.body, max_tokens: cap } } as Task;
  }
  if (asked > cap) {
    const isNew = task.kind === 'chat' && task.body.max_completion_tokens != null;
    throw tooManyTokens(isNew ? 'max_completion_tokens' : 'max_tokens', { asked, cap, model: id });
  }
  return task;
}
