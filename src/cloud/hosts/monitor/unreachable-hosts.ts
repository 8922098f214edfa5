// What a silent host means for its instances: they become unhealthy with a reason, nothing is deleted, and
// they are reconciled again as soon as the host answers.

import type { Logger } from 'pino';
import type { Audit } from '#accounts/audit/audit.ts';
import { recordHealth } from '#cloud/instances/health-events.ts';
import type { InstanceEvents } from '#cloud/instances/instance-events.ts';
import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';

export interface UnreachableHosts {
  /** Marks the instances of one node, or of the whole host if the node is undefined. */
  markUnhealthy(hostId: string, node: string | undefined, reason: string): Promise<void>;
  /** Makes marked instances due whose host can be reached again. */
  clear(reaches: (hostId: string, node: string | null) => boolean): Promise<void>;
}

export interface UnreachableHostsParts {
  audit: Audit;
  events: InstanceEvents;
  log: Logger;
  nudge(): void;
}

const maxRowsPerRound = 500;

export function createUnreachableHosts(
  db: Database,
  clock: Clock,
  { audit, events, log, nudge }: UnreachableHostsParts,
): UnreachableHosts {
  return {
    async markUnhealthy(hostId, node, reason) {
      let query = db
        .selectFrom('instances')
        .select(['id', 'account_id', 'status', 'version'])
        .where('host_id', '=', hostId)
        .where('status', 'in', ['booting', 'active'])
        // The process that holds a claim sees the failure itself.
        .where('claimed_until', '<=', clock.now())
        .limit(maxRowsPerRound);
      if (node !== undefined) query = query.where('node', '=', node);
      const status = 'unhealthy';
      const changes = { status, status_reason: reason, host_silent: 1 } as const;
      for (const row of await query.execute()) {
        const isMarked = await db.transaction().execute(async (tx) => {
          const { numUpdatedRows } = await tx
            .updateTable('instances')
            .set(changes)
            .where('id', '=', row.id)
            .where('status', '=', row.status)
            .where('version', '=', row.version)
            .where('claimed_until', '<=', clock.now())
            .executeTakeFirstOrThrow();
          if (numUpdatedRows > 0n) await recordHealth(tx, audit, row, changes);
          return numUpdatedRows > 0n;
        });
        if (!isMarked) continue;
        log.info({ instance: row.id, from: row.status, to: status, reason }, 'instance changed');
        events.publish({ accountId: row.account_id, instanceId: row.id, status });
      }
    },

    async clear(reaches) {
      const marked = await db
        .selectFrom('instances')
        .select(['id', 'host_id', 'node'])
        .where('host_silent', '=', 1)
        .where('status', '!=', 'terminated')
        .where('due_at', 'is', null)
        .limit(maxRowsPerRound)
        .execute();
      const ids = marked.filter(({ host_id, node }) => reaches(host_id, node)).map(({ id }) => id);
      if (ids.length === 0) return;
      await db
        .updateTable('instances')
        .set({ due_at: clock.now() })
        .where('id', 'in', ids)
        .where('host_silent', '=', 1)
        .execute();
      nudge();
    },
  };
}
