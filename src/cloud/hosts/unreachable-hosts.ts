// What a host's silence does to its instances: they are unhealthy and say why, nothing is deleted, and they
// are looked at again as soon as the host is heard.

import type { Logger } from 'pino';
import type { InstanceEvents } from '#cloud/instances/instance-events.ts';
import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';

export interface Silence {
  /** Those of one node, or of all when it is undefined. */
  fall(hostId: string, node: string | undefined, reason: string): Promise<void>;
  /** Makes due what was silent and can be reached now. */
  lift(reaches: (hostId: string, node: string | null) => boolean): Promise<void>;
}

export interface SilenceParts {
  events: InstanceEvents;
  log: Logger;
  nudge(): void;
}

const atOnce = 500;

export function createSilence(db: Database, clock: Clock, parts: SilenceParts): Silence {
  async function fall(hostId: string, node: string | undefined, reason: string) {
    let query = db
      .selectFrom('instances')
      .select(['id', 'account_id', 'status', 'version'])
      .where('host_id', '=', hostId)
      .where('status', 'in', ['booting', 'active'])
      // Somebody is at work on it and will see for himself.
      .where('claimed_until', '<=', clock.now())
      .limit(atOnce);
    if (node !== undefined) query = query.where('node', '=', node);
    for (const row of await query.execute()) {
      const { numUpdatedRows } = await db
        .updateTable('instances')
        .set({ status: 'unhealthy', status_reason: reason, host_silent: 1 })
        .where('id', '=', row.id)
        .where('status', '=', row.status)
        .where('version', '=', row.version)
        .where('claimed_until', '<=', clock.now())
        .executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) continue;
      parts.log.info(
        { instance: row.id, from: row.status, to: 'unhealthy', reason },
        'instance changed',
      );
      parts.events.publish({
        accountId: row.account_id,
        instanceId: row.id,
        status: 'unhealthy',
      });
    }
  }

  async function lift(reaches: (hostId: string, node: string | null) => boolean) {
    const silent = await db
      .selectFrom('instances')
      .select(['id', 'host_id', 'node'])
      .where('host_silent', '=', 1)
      .where('status', '!=', 'terminated')
      .where('due_at', 'is', null)
      .limit(atOnce)
      .execute();
    const heard = silent.filter(({ host_id, node }) => reaches(host_id, node));
    if (heard.length === 0) return;
    await db
      .updateTable('instances')
      .set({ due_at: clock.now() })
      .where(
        'id',
        'in',
        heard.map(({ id }) => id),
      )
      .where('host_silent', '=', 1)
      .execute();
    parts.nudge();
  }

  return { fall, lift };
}
