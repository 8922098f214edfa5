// How several processes share the work in the rows without a leader: a due row is claimed for a short
// time by a write that only one of them can win, and is free again if its holder dies.

import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';

/** Tables with the work columns. */
export type WorkTable = 'instances' | 'filesystems';

export interface Claim {
  readonly id: string;
  readonly token: string;
  /** Where its work is; null when nowhere yet. */
  readonly hostId: string | null;
}

export interface Claims {
  /** Claims what is due on these hosts or, for filesystems, nowhere yet; oldest first. */
  take(table: WorkTable, limit: number, hostIds: readonly string[]): Promise<Claim[]>;
  /** Holds the claim while `work` runs, however long that takes. */
  holding<Result>(table: WorkTable, claim: Claim, work: () => Promise<Result>): Promise<Result>;
  /** Gives it back and leaves the row as it is. */
  release(table: WorkTable, claim: Claim): Promise<void>;
  /** Frees every claim. Only for a database that no other process uses. */
  releaseAll(): Promise<void>;
}

export function createClaims(db: Database, clock: Clock, { leaseMs }: { leaseMs: number }): Claims {
  // Both tables have the same work columns, which is all that is touched here.
  const as = (table: WorkTable) => table as 'instances';

  async function take(
    table: WorkTable,
    limit: number,
    hostIds: readonly string[],
  ): Promise<Claim[]> {
    const now = clock.now();
    // Looking first costs an idle server one read of an index and no write lock.
    const due = await db
      .selectFrom(as(table))
      .select('id')
      .where('due_at', '<=', now)
      .where('claimed_until', '<=', now)
      .where((row) => {
        const nowhere = row('host_id', 'is', null);
        // PostgreSQL takes no empty list.
        return hostIds.length === 0 ? nowhere : row.or([row('host_id', 'in', hostIds), nowhere]);
      })
      .orderBy('due_at')
      .limit(limit)
      .execute();
    if (due.length === 0) return [];
    const token = newId();
    const won: Claim[] = [];
    for (const { id } of due) {
      // The conditions stand here again: a process that waited for the row sees them fail. One row at a
      // time, because a write to several could wait for one that waits for it.
      const row = await db
        .updateTable(as(table))
        .set({ claim: token, claimed_until: now + leaseMs })
        .where('id', '=', id)
        .where('due_at', '<=', now)
        .where('claimed_until', '<=', now)
        .returning('host_id')
        .executeTakeFirst();
      if (row !== undefined) won.push({ id, token, hostId: row.host_id });
    }
    return won;
  }

  async function holding<Result>(table: WorkTable, claim: Claim, work: () => Promise<Result>) {
    const renewal = setInterval(() => {
      // One that fails is made good by the next; if all fail, the claim ends, as it should.
      write(table, claim, { claimed_until: clock.now() + leaseMs }).catch(() => {});
    }, leaseMs / 3);
    try {
      return await work();
    } finally {
      clearInterval(renewal);
    }
  }

  async function write(
    table: WorkTable,
    { id, token }: Claim,
    values: { claimed_until: number; claim?: null },
  ) {
    await db
      .updateTable(as(table))
      .set(values)
      .where('id', '=', id)
      .where('claim', '=', token)
      .execute();
  }

  return {
    take,
    holding,
    release: (table, claim) => write(table, claim, { claim: null, claimed_until: 0 }),
    async releaseAll() {
      for (const table of ['instances', 'filesystems'] as const) {
        await db
          .updateTable(as(table))
          .set({ claim: null, claimed_until: 0 })
          .where('claim', 'is not', null)
          .execute();
      }
    },
  };
}
