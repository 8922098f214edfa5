// What drivers say without being asked: a machine may have changed. Hints are gathered for a moment and
// make their rows due, so that the reconciler looks; nothing is believed.

import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';

export interface Hints {
  add(id: string): void;
  stop(): void;
}

export interface HintParts {
  /** Rows became due. */
  nudge(): void;
  complain(error: unknown): void;
}

const gatherMs = 20;
/** More than this in a moment are left to the reconciler's own rounds. */
const maxHints = 500;

export function createHints(db: Database, clock: Clock, parts: HintParts): Hints {
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
      // A step that failed waits its time: the hint may be of its own doing.
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
        makeDue(ids).then(parts.nudge, parts.complain);
      }, gatherMs).unref();
    },
    stop: () => clearTimeout(timer),
  };
}
