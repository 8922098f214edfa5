// Token counts of answers whose server gave none: it died, the client left, or it never counts. What was
// used is billed all the same: exactly for the Llama-3 family, of others as their server says or by a usual length.

import { type Engine, type Task, toGivenPrompts } from '#inference/engine.ts';
import { toCountBounds } from '#inference/engines/upstream/usage-check.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import { estimateTokens, type TokenCounter } from '#inference/models/tokens.ts';

/** Null where it can't be counted, at once or in the end. Never fails. */
type CountGenerated = (text: string) => Promise<number | null> | null;

export interface FallbackTokenCounts {
  /** For generated text of such a model; undefined where events tell more than a guess would. */
  forGenerated(entry: CatalogEntry): CountGenerated | undefined;
  /** Of all prompts of a request together, counted by that engine where only it can. Never fails. */
  ofPrompt(entry: CatalogEntry, task: Task, engine: Engine | null): Promise<number>;
}

/** Longer ones are taken for what is usual: whoever waits for the count has its answer already. */
const maxTextLength = 256 * 1024;
const maxPromptTokens = 4_000_000;
const countTimeoutMs = 2000;

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
    return isOwn || tokens <= mostOf(task, contextWindow) ? tokens : estimatePrompt(task);
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
      for (const one of toSinglePrompts(task)) total += await count(one, entry, engine);
      return total;
    },
  };
}

/** A server that counts prompts may be as wrong as one that counts its answers. */
const mostOf = (task: Task, contextWindow: number) =>
  toCountBounds(task, contextWindow, Buffer.byteLength(JSON.stringify(task.body))).promptTokens;

/** The counter tells the longest of several, but each of them is paid for. */
function toSinglePrompts(task: Task): Task[] {
  if (task.kind === 'chat') return [task];
  const { body } = task;
  return toGivenPrompts(body).map((prompt) => ({ kind: 'completion', body: { ...body, prompt } }));
}

function estimatePrompt(task: Task): number {
  if (task.kind === 'chat') return estimateTokens(JSON.stringify(task.body.messages));
  const { prompt } = task.body;
  return typeof prompt === 'string' ? estimateTokens(prompt) : prompt.length;
}
