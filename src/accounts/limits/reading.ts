// Requests whose bodies are being read on this server. They are not reserved yet, because what they ask for is
// not known, but take places among the concurrent requests of their key and account.

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
  /** By scope. Only large bodies come by here, so that small requests pay one comparison. */
  const counts = new Map<string, number>();

  function add(scopes: readonly LimitScope[], change: number): void {
    for (const { id } of scopes) {
      const count = (counts.get(id) ?? 0) + change;
      if (count === 0) counts.delete(id);
      else counts.set(id, count);
    }
  }

  function lowerOne(scope: LimitScope): LimitScope {
    const { concurrentRequests: limit } = scope.limits;
    const count = counts.get(scope.id) ?? 0;
    if (limit === null || count === 0) return scope;
    const concurrentRequests = Math.max(0, limit - count);
    return { ...scope, limits: { ...scope.limits, concurrentRequests } };
  }

  return {
    lower: (scopes) => (counts.size === 0 ? scopes : scopes.map(lowerOne)),
    enter(scopes) {
      add(scopes, 1);
      let isOver = false;
      return {
        leave() {
          if (isOver) return;
          isOver = true;
          add(scopes, -1);
        },
      };
    },
  };
}
