// Requests whose bodies are being read on this server. They are not reserved yet, because what they ask for is
// not known, but take places among the concurrent requests of their key and account.

import { KeyCounts } from '#lib/memory/key-counts.ts';
import type { LimitScope } from './store.ts';

/** A request whose body is being read. */
export interface Arrival {
  /** Its body has been read, or never will be. Counts once, however often it is called. */
  leave(): void;
}

export interface Reading {
  /** The same scopes, with as many concurrent requests fewer as are being read. */
  lower(scopes: readonly LimitScope[]): readonly LimitScope[];
  enter(scopes: readonly LimitScope[]): Arrival;
}

export function createReading(): Reading {
  /** Large bodies being read, by scope. Small requests pay one comparison. */
  const counts = new KeyCounts();

  function lowerOne(scope: LimitScope): LimitScope {
    const { concurrentRequests: limit } = scope.limits;
    const count = counts.get(scope.id);
    if (limit === null || count === 0) return scope;
    const concurrentRequests = Math.max(0, limit - count);
    return { ...scope, limits: { ...scope.limits, concurrentRequests } };
  }

  return {
    lower: (scopes) => (counts.size === 0 ? scopes : scopes.map(lowerOne)),
    enter(scopes) {
      for (const { id } of scopes) counts.add(id);
      let isOver = false;
      return {
        leave() {
          if (isOver) return;
          isOver = true;
          for (const { id } of scopes) counts.remove(id);
        },
      };
    },
  };
}
