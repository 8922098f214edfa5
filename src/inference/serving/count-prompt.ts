// Counts the tokens of a prompt for a client that asks for nothing else. The caller's rate limits
// apply; it costs nothing.

import type { RequestLimiter } from '#accounts/limits/request-limiter.ts';
import type { Cancellation } from '#http/client-disconnect.ts';
import type { BackendList } from '#inference/backends/backend.ts';
import type { Task } from '#inference/engine.ts';
import { modelNotFound } from '#inference/errors.ts';
import { countMedia } from '#inference/images/remote-media.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import type { Caller } from '#inference/request.ts';
import type { FallbackTokenCounts } from './fallback-token-count.ts';
import { countByBackend } from './plan.ts';

/** Throws InferenceError, LimitReached, or the signal's reason. */
export type CountPrompt = (caller: Caller, task: Task, signal: Cancellation) => Promise<number>;

const nothing = Object.freeze({ tokens: 0, costNano: 0 });

export function createCountPrompt(parts: {
  readonly catalog: Catalog;
  readonly limits: RequestLimiter;
  readonly backends: BackendList;
  readonly fallbackCounts: FallbackTokenCounts;
  /** Hosts whose images may be named. */
  readonly imageHosts: readonly string[];
}): CountPrompt {
  const { catalog, limits, backends, fallbackCounts, imageHosts } = parts;
  return async (caller, given, signal) => {
    const entry = catalog.find(given.body.model);
    if (entry === undefined) throw modelNotFound(given.body.model);
    const reservation = await limits.reserve(caller, nothing);
    try {
      // A request that only counts must not make the server fetch anything.
      const { task, tokens } = countMedia(given, imageHosts);
      // The backend's own count has its template and its tools.
      const counted = await countByBackend(backends, entry, task, signal);
      return (counted ?? (await fallbackCounts.ofPrompt(entry, task, null))) + tokens;
    } finally {
      reservation.settle(nothing);
    }
  };
}
