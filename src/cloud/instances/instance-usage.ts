// The cost of instances: the seconds each existed in a time range, at the price it was launched for. Read from
// the rows of the instances, which outlive the machines.

import type { InstanceUsage } from '#cloud/schema.ts';
import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';

export interface InstanceUsages {
  /** Instances that existed in the range, oldest first. Running ones count up to now. */
  between(accountId: string, from: number, to: number): Promise<InstanceUsage[]>;
}

const maxRows = 10_000;

export function createInstanceUsages(db: Database, clock: Clock): InstanceUsages {
  return {
    async between(accountId, from, to) {
      const rows = await db
        .selectFrom('instances')
        .select(['id', 'name', 'type_name', 'region', 'status', 'price_cents_per_hour'])
        .select(['launched_at', 'terminated_at'])
        .where('account_id', '=', accountId)
        .where('launched_at', '<', to)
        .where((row) => row.or([row('terminated_at', 'is', null), row('terminated_at', '>', from)]))
        .orderBy('launched_at')
        .orderBy('id')
        .limit(maxRows)
        .execute();
      return rows.map((row) => {
        const begin = Math.max(row.launched_at, from);
        const end = Math.min(row.terminated_at ?? clock.now(), to);
        const seconds = Math.max(0, Math.floor((end - begin) / 1000));
        return {
          instance_id: row.id,
          name: row.name,
          instance_type: row.type_name,
          region: row.region,
          status: row.status,
          price_cents_per_hour: row.price_cents_per_hour,
          launched_at: toTime(row.launched_at),
          terminated_at: row.terminated_at === null ? null : toTime(row.terminated_at),
          seconds,
          cents: Math.round((seconds * row.price_cents_per_hour * 100) / 3600) / 100,
        };
      });
    },
  };
}

const toTime = (ms: number) => new Date(ms).toISOString();
