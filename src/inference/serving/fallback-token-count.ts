// Token counts for responses whose server reported none: it died, the client disconnected, or it never counts. The
// usage is billed all the same. The Llama-3 family is counted exactly; other models are counted by their server or
// estimated by the usual token length.

import { type Engine, type Task, toGivenPrompts } from '#inference/engine.ts';
import { toCountBounds } from '#inference/engines/upstream/usage.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import { estimateTokens, type TokenCounter } from '#inference/models/tokens.ts';
import type { ChatMessage } from '#inference/schema.ts';

/** Returns or resolves to null if the text can't be counted. Never fails. */
type CountGenerated = (text: string) => Promise<number | null> | null;

export interface FallbackTokenCounts {
  /** Returns the counter for the model's output; undefined if counting events is better than an estimate. */
  forGenerated(entry: CatalogEntry): CountGenerated | undefined;
  /** Counts all prompts of a request together, using the engine if only it can count them. Never fails. */
  ofPrompt(entry: CatalogEntry, task: Task, engine: Engine | null): Promise<number>;
}

/** Longer texts are estimated, because the count delays the end of a request that has already been answered. */
const maxTextLength = 256 * 1024;
const maxPromptTokens = 4_000_000;
const countTimeoutMs = 2000;
/** More prompts than these are estimated if only their backend can count them: counting takes a request each. */
export const maxCounted = 32;

export function createFallbackTokenCounts(counter: TokenCounter): FallbackTokenCounts {
  async function count(
    task: Task,
    { vocabulary, contextWindow }: CatalogEntry,
    engine: Engine | null,
  ): Promise<number> {
    const counted =
      vocabulary === 'other'
        ? engine?.countPromptTokens(task, AbortSignal.timeout(countTimeoutMs))
        : counter.count(task, vocabulary, maxPromptTokens);
    const tokens = (await counted?.catch(() => null)) ?? null;
    if (tokens === null) return estimatePrompt(task);
    const isOwn = vocabulary !== 'other';
    return isOwn || tokens <= maxTokensOf(task, contextWindow) ? tokens : estimatePrompt(task);
  }

  return {
    forGenerated({ vocabulary }) {
      if (vocabulary === 'other') return undefined;
      return (text) => {
        if (text.length > maxTextLength) return null;
        return counter.countText(text)?.catch(() => null) ?? null;
      };
    },
    async ofPrompt(entry, task, engine) {
      let total = 0;
      const all = toSinglePrompts(task);
      const asked = all.length <= maxCounted ? engine : null;
      for (const one of all) total += await count(one, entry, asked);
      return total;
    },
  };
}

/** Upper bound for a count: a server's prompt counts may be as wrong as its response counts. */
const maxTokensOf = (task: Task, contextWindow: number) =>
  toCountBounds(task, contextWindow, Buffer.byteLength(JSON.stringify(task.body))).promptTokens;

/** Splits a request into its prompts: the counter returns only the longest of several, but each is billed. */
function toSinglePrompts(task: Task): Task[] {
  if (task.kind === 'chat') return [task];
  const { body } = task;
  return toGivenPrompts(body).map((prompt) => ({ kind: 'completion', body: { ...body, prompt } }));
}

/** Tokens of an image or a file, of which the number of bytes says nothing. */
const tokensPerOtherPart = 1024;

function estimatePrompt(task: Task): number {
  if (task.kind === 'chat') return estimateMessages(task.body.messages);
  const { prompt } = task.body;
  return typeof prompt === 'string' ? estimateTokens(prompt) : prompt.length;
}

function estimateMessages(messages: readonly ChatMessage[]): number {
  let others = 0;
  const texts = messages.map(({ content, ...message }) => {
    if (!Array.isArray(content)) return { ...message, content };
    const text = content.filter(({ type }) => type === 'text');
    others += content.length - text.length;
    return { ...message, content: text };
  });
  return estimateTokens(JSON.stringify(texts)) + others * tokensPerOtherPart;
}
