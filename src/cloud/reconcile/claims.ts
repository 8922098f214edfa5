// How several processes share the work in the rows without a leader. A claim is a lease on a due row: the
// update that takes it succeeds in one process only, and it expires if that process dies.

import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';

/** The tables that have the columns `due_at`, `claim` and `claimed_until`. */
export type WorkTable = 'instances' | 'filesystems';

export interface Claim {
  readonly id: string;
  readonly token: string;
  /** The host to work on; null for a filesystem that is on no host yet. */
  readonly hostId: string | null;
}

export interface Claims {
  /** Claims due rows of these hosts, and due filesystems that are on no host yet; the oldest first. */
  take(table: WorkTable, maxClaims: number, hostIds: readonly string[]): Promise<Claim[]>;
  /** Renews the claim while `work` runs, however long that takes. */
  holding<Result>(table: WorkTable, claim: Claim, work: () => Promise<Result>): Promise<Result>;
  /** Releases the claim and leaves the row as it is. */
  release(table: WorkTable, claim: Claim): Promise<void>;
  /** Releases every claim. Only for a database that no other process uses. */
  releaseAll(): Promise<void>;
}

export function createClaims(db: Database, clock: Clock, { leaseMs }: { leaseMs: number }): Claims {
  return {
    async take(table, maxClaims, hostIds) {
      const now = clock.now();
      // A read first: an idle server costs one index lookup and takes no write lock.
      const due = await findDue(db, table, now, { maxClaims, hostIds });
      const token = newId();
      const claims: Claim[] = [];
      for (const { id } of due) {
        // The conditions are repeated, so that a process that waited for the row lock sees them fail. One
        // row per statement, because updates of several rows could deadlock.
        const row = await db
          .updateTable(asInstances(table))
          .set({ claim: token, claimed_until: now + leaseMs })
          .where('id', '=', id)
          .where('due_at', '<=', now)
          .where('claimed_until', '<=', now)
          .returning('host_id')
          .executeTakeFirst();
        if (row !== undefined) claims.push({ id, token, hostId: row.host_id });
      }
      return claims;
    },

    async holding(table, claim, work) {
      const renewal = setInterval(() => {
        // The next renewal makes up for a failed one. If all fail the claim expires, as it should.
        write(db, table, claim, { claimed_until: clock.now() + leaseMs }).catch(() => {});
      }, leaseMs / 3);
      try {
        return await work();
      } finally {
        clearInterval(renewal);
      }
    },

    release: (table, claim) => write(db, table, claim, { claim: null, claimed_until: 0 }),

    async releaseAll() {
      for (const table of ['instances', 'filesystems'] as const) {
        await db
          .updateTable(asInstances(table))
          .set({ claim: null, claimed_until: 0 })
          .where('claim', 'is not', null)
          .execute();
      }
    },
  };
}

/** Satisfies the types: both tables have the work columns, and no other column is used here. */
const asInstances = (table: WorkTable) => table as 'instances';

function findDue(
  db: Database,
  table: WorkTable,
  now: number,
  { maxClaims, hostIds }: { maxClaims: number; hostIds: readonly string[] },
) {
  return db
    .selectFrom(asInstances(table))
    .select('id')
    .where('due_at', '<=', now)
    .where('claimed_until', '<=', now)
    .where((row) => {
      const onNoHost = row('host_id', 'is', null);
      // PostgreSQL rejects an empty list.
      return hostIds.length === 0 ? onNoHost : row.or([row('host_id', 'in', hostIds), onNoHost]);
    })
    .orderBy('due_at')
    .limit(maxClaims)
    .execute();
}

async function write(
  db: Database,
  table: WorkTable,
  { id, token }: Claim,
  values: { claimed_until: number; claim?: null },
): Promise<void> {
  await db
    .updateTable(asInstances(table))
    .set(values)
    .where('id', '=', id)
    .where('claim', '=', token)
    .execute();
}
