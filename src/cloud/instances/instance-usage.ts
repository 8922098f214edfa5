// The cost of instances: the seconds each existed in a time range, at the price it was launched for. Read from
// the rows of the instances, which outlive the machines.

import { type Kysely, sql } from 'kysely';
import { type Page, type PageOptions, type PageOrder, readPage } from '#accounts/paging.ts';
import type { InstanceUsage } from '#cloud/schema.ts';
import type { Database, Tables } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';

/** Unix milliseconds; `to` is exclusive. */
export interface UsageSpan {
  readonly from: number;
  readonly to: number;
}

export interface InstanceUsages {
  /** Instances of the account that existed in the span, newest first. Running ones count up to now. */
  list(accountId: string, span: UsageSpan, page: PageOptions): Promise<Page<InstanceUsage>>;
  /** The sums over all instances of the account that existed in the span. */
  total(accountId: string, span: UsageSpan): Promise<{ seconds: number; cents: number }>;
}

/** The order of lists of instances. */
export const newestLaunch: PageOrder<{ launched_at: number; id: string }> = {
  at: 'launched_at',
  id: 'instances.id',
  of: ({ launched_at, id }) => ({ at: launched_at, id }),
};

export function createInstanceUsages(db: Database, clock: Clock): InstanceUsages {
  return {
    async list(accountId, span, page) {
      const rows = selectInSpan(db, accountId, span)
        .select(['id', 'name', 'type_name', 'region', 'status', 'price_cents_per_hour'])
        .select(['launched_at', 'terminated_at']);
      const { data, next } = await readPage(rows, page, newestLaunch);
      return { data: data.map((row) => toUsage(row, span, clock.now())), next };
    },

    async total(accountId, span) {
      const [from, to] = [span.from, Math.min(span.to, clock.now())];
      // Whole seconds per instance, as each one is listed.
      const seconds = sql`(case when terminated_at < ${to} then terminated_at else ${to} end
        - case when launched_at > ${from} then launched_at else ${from} end) / 1000`;
      const row = await selectInSpan(db, accountId, { from, to })
        .select([
          sql<number>`coalesce(sum(${seconds}), 0)`.as('seconds'),
          sql<number>`coalesce(sum(${seconds} * price_cents_per_hour), 0)`.as('price'),
        ])
        .executeTakeFirstOrThrow();
      return { seconds: Number(row.seconds), cents: toCents(Number(row.price)) };
    },
  };
}

const selectInSpan = (db: Kysely<Tables>, accountId: string, { from, to }: UsageSpan) =>
  db
    .selectFrom('instances')
    .where('account_id', '=', accountId)
    .where('launched_at', '<', to)
    .where((row) => row.or([row('terminated_at', 'is', null), row('terminated_at', '>', from)]));

interface UsedInstance {
  id: string;
  name: string | null;
  type_name: string;
  region: string;
  status: string;
  price_cents_per_hour: number;
  launched_at: number;
  terminated_at: number | null;
}

function toUsage(row: UsedInstance, { from, to }: UsageSpan, now: number): InstanceUsage {
  const begin = Math.max(row.launched_at, from);
  const end = Math.min(row.terminated_at ?? now, to);
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
    cents: toCents(seconds * row.price_cents_per_hour),
  };
}

/** Rounds to a hundredth of a cent. */
const toCents = (secondsTimesHourlyPrice: number) =>
  Math.round((secondsTimesHourlyPrice * 100) / 3600) / 100;

const toTime = (ms: number) => new Date(ms).toISOString();
