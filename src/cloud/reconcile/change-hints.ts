// Events from drivers: a machine may have changed. Hints are collected for a moment and then make their rows
// due, so that the reconciler inspects the machines; a hint itself changes nothing else.

import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';

export interface ChangeHints {
  add(id: string): void;
  stop(): void;
}

export interface ChangeHintParts {
  /** Called when rows became due. */
  nudge(): void;
  logFailure(error: unknown): void;
}

const collectMs = 20;
/** Hints beyond this number are dropped; the reconciler's own rounds observe those machines. */
const maxHints = 500;

export function createChangeHints(db: Database, clock: Clock, parts: ChangeHintParts): ChangeHints {
  const hinted = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  async function makeDue(ids: readonly string[]): Promise<void> {
    const now = clock.now();
    await db
      .updateTable('instances')
      .set({ due_at: now })
      .where('id', 'in', ids)
      .where('status', '!=', 'terminated')
      .where((row) => row.or([row('due_at', 'is', null), row('due_at', '>', now)]))
      // A failed step keeps its backoff: it may have caused the hint itself.
      .where('attempts', '=', 0)
      .execute();
  }

  return {
    add(id) {
      if (hinted.size < maxHints) hinted.add(id);
      timer ??= setTimeout(() => {
        timer = undefined;
        const ids = [...hinted];
        hinted.clear();
        makeDue(ids).then(parts.nudge, parts.logFailure);
      }, collectMs).unref();
    },
    stop: () => clearTimeout(timer),
  };
}
