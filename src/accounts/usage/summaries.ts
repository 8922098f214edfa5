// Usage over time from the hourly sums. A query reads rows per step and group, not per request.

import { type RawBuilder, sql } from 'kysely';
import type { Database } from '#db/tables/tables.ts';
import { invalidBody } from '#lib/errors.ts';
import { toDollars } from './dollars.ts';
import { hourMs } from './periods.ts';
import type { Grouping, Step, UsageBucket } from './schema.ts';

export interface SummarySpan {
  /** Milliseconds; the start of a step. */
  from: number;
  /** Exclusive. */
  to: number;
  step: Step;
  by: Grouping;
  /** Only the requests for this model, or with this key. */
  model?: string | undefined;
  key?: string | undefined;
}

export interface UsageSummaries {
  /** Ordered by time, then by group. Throws if there are more buckets than one response may hold. */
  list(accountId: string, span: SummarySpan): Promise<UsageBucket[]>;
  /** The same one day at a time, without that bound. */
  days(accountId: string, span: SummarySpan): AsyncGenerator<UsageBucket[]>;
}

const dayMs = 24 * hourMs;
const maxBuckets = 20_000;

const starts: Record<Step, RawBuilder<number>> = {
  hour: sql`u.hour`,
  day: sql`u.hour - u.hour % ${sql.lit(dayMs)}`,
};
const groups: Record<Grouping, RawBuilder<string>> = {
  model: sql`u.model`,
  key: sql`u.key_id`,
  backend: sql`u.backend`,
  none: sql`''`,
};

interface Sums extends Omit<UsageBucket, 'start' | 'group' | 'cost'> {
  start: number;
  group_name: string;
  cost_nano: number;
  first_token_sum: number;
  first_tokens: number;
}

export function createUsageSummaries(db: Database): UsageSummaries {
  async function read(accountId: string, span: SummarySpan, limit: number): Promise<UsageBucket[]> {
    const { from, to, step, by, model, key } = span;
    const isByKey = by === 'key';
    const { rows } = await sql<Sums>`
      select ${starts[step]} as start, ${groups[by]} as group_name,
        ${isByKey ? sql`min(k.label)` : sql`null`} as label,
        sum(u.requests) as requests, sum(u.errors) as errors,
        sum(u.refused) as refused, sum(u.aborted) as aborted,
        sum(u.prompt_tokens) as prompt_tokens, sum(u.completion_tokens) as completion_tokens,
        sum(u.cached_tokens) as cached_tokens, sum(u.cost_nano) as cost_nano,
        sum(u.first_token_ms) as first_token_sum, sum(u.first_tokens) as first_tokens
      from usage_hours u
      ${isByKey ? sql`left join api_keys k on k.id = u.key_id` : sql``}
      where u.account_id = ${accountId} and u.hour >= ${from} and u.hour < ${to}
        ${model === undefined ? sql`` : sql`and u.model = ${model}`}
        ${key === undefined ? sql`` : sql`and u.key_id = ${key}`}
      group by 1, 2 order by 1, 2 limit ${limit}`.execute(db);
    return rows.map(toBucket);
  }

  return {
    async list(accountId, span) {
      const buckets = await read(accountId, span, maxBuckets + 1);
      if (buckets.length <= maxBuckets) return buckets;
      throw invalidBody(
        `This span has over ${maxBuckets} rows. Choose a shorter one, or export it as CSV.`,
        'from',
      );
    },
    async *days(accountId, span) {
      for (let day = span.from; day < span.to; day += dayMs) {
        const to = Math.min(day + dayMs, span.to);
        yield await read(accountId, { ...span, from: day, to }, Number.MAX_SAFE_INTEGER);
      }
    },
  };
}

const toBucket = (sums: Sums): UsageBucket => ({
  start: new Date(sums.start).toISOString(),
  group: sums.group_name === '' ? null : sums.group_name,
  label: sums.label,
  requests: sums.requests,
  errors: sums.errors,
  refused: sums.refused,
  aborted: sums.aborted,
  prompt_tokens: sums.prompt_tokens,
  completion_tokens: sums.completion_tokens,
  cached_tokens: sums.cached_tokens,
  cost: toDollars(sums.cost_nano),
  first_token_ms:
    sums.first_tokens === 0
      ? null
      : Math.round((sums.first_token_sum / sums.first_tokens) * 100) / 100,
});
