// Computes the response to a request that generates nothing: plans which backends are able, and tries one after the
// other.

import type { Backend, BackendList } from '#inference/backends/backend.ts';
import { type Call, countPrompts, type Task } from '#inference/engine.ts';
import { notAble } from '#inference/errors.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import { estimateTokens } from '#inference/models/tokens.ts';
import { type AttemptLog, type AttemptParts, conclude, tryBackends } from './attempts.ts';
import { maxCounted } from './fallback-token-count.ts';
import type { Plan } from './plan.ts';
import type { Computation, Computed } from './response-format.ts';

/** Throws InferenceError if no backend of the model has the ability. */
export function planComputed(
  backends: BackendList,
  served: CatalogEntry,
  task: Task,
  computation: Computation,
): Plan {
  const all = backends.forModel(served.id);
  const unfit = all.filter(({ engine }) => computation.start(engine) === undefined);
  if (unfit.length > 0 && unfit.length === all.length)
    throw notAble(served.id, computation.ability);
  return { served, task, promptTokens: null, unfit: new Set<Backend>(unfit) };
}

/** Throws EngineError, or the signal's reason when it aborts. */
export async function compute(
  parts: AttemptParts,
  { served, task, unfit }: Plan,
  computation: Computation,
  { call, log }: { call: Call; log: AttemptLog },
): Promise<Computed> {
  const request = { task, call, log, exclude: unfit };
  const { lease, result } = await tryBackends(parts, served.id, request, ({ engine }) => {
    const run = computation.start(engine);
    if (run === undefined) throw notAble(served.id, computation.ability);
    return run(call);
  });
  lease.backend.health.succeeded();
  conclude(parts, lease, null);
  return result;
}

/** Tokens to bill; 0 if each text is to be counted. */
export function toPromptTokens({ promptTokens }: Computed, task: Task): number {
  if (promptTokens !== null || countPrompts(task) <= maxCounted) return promptTokens ?? 0;
  const { prompt } = task.body as { prompt: readonly (string | readonly number[])[] };
  return prompt.reduce(
    (sum, text) => sum + (typeof text === 'string' ? estimateTokens(text) : text.length),
    0,
  );
}
