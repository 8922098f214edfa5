// Decides who serves a request: the model asked for, or its fallback when the context is too long
// (seed 1.5). Pure but for the count, which is only made when the bytes say that it could matter.

import type { Catalog, CatalogEntry } from './catalog.ts';
import type { Task } from './engine.ts';
import type { TokenCounter } from './tokens.ts';

export interface Plan {
  /** Whose name the answer carries. */
  readonly served: CatalogEntry;
}

/** What a template may add that is in no byte of the request. */
const templateTokens = 64;

export async function makePlan(
  catalog: Catalog,
  counter: TokenCounter,
  asked: CatalogEntry,
  request: { task: Task; bodyBytes: number },
): Promise<Plan> {
  const fallback = asked.contextFallback;
  if (fallback === null) return { served: asked };
  const completion = toMaxTokens(request.task) ?? 0;
  // A token is at least one byte of the request.
  if (request.bodyBytes + templateTokens + completion <= fallback.above) return { served: asked };
  const prompt = await counter.count(request.task, fallback.above);
  if (prompt + completion <= fallback.above) return { served: asked };
  return { served: catalog.find(fallback.to) ?? asked };
}

export function toMaxTokens({ kind, body }: Task): number | null {
  return (kind === 'chat' ? body.max_completion_tokens : null) ?? body.max_tokens ?? null;
}
