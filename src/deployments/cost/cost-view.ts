// What a deployment served and cost lately, from the run times of its replicas and the usage of their backends.

import { sql } from 'kysely';
import type { Database } from '#db/tables/tables.ts';
import type { Stored } from '#deployments/ground/rows.ts';
import type { CostView } from '#deployments/ground/schema.ts';
import type { Clock } from '#lib/clock.ts';
import { type Period, toCost } from './cost.ts';
import type { DeploymentRuns } from './runs.ts';

interface CostParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly runs: DeploymentRuns;
  /** Price of a machine of the instance type. */
  hourlyCents(runsOn: string): number;
}

const hourMs = 3_600_000;
const periodMs = 30 * 24 * hourMs;
const recentMs = 5 * 60_000;
/** Requests that have ended and began earlier than this before the recent time are left out, so that few rows are read. */
const maxEarlierMs = 15 * 60_000;

export async function readCost(
  { db, clock, runs, hourlyCents }: CostParts,
  { id, name, createdAt, spec }: Stored,
): Promise<CostView> {
  const until = clock.now();
  const since = Math.max(createdAt, until - periodMs);
  const cost = toCost(await runs.list(id, since), { since, until });
  const tokens = await countTokens(db, name, since);
  const dollars = cost.machineCents / 100;
  const idleHours = cost.idleMs / hourMs;
  return {
    since: new Date(since).toISOString(),
    tokens,
    engine_seconds: Math.round(cost.engineMs / 1_000),
    machine_dollars: dollars,
    dollars_per_million_tokens: tokens === 0 || dollars === 0 ? null : (dollars / tokens) * 1e6,
    idle_hours: idleHours,
    saved_dollars: (idleHours * hourlyCents(spec.runs_on)) / 100,
    ...(await readRecent(db, name, { since: until - recentMs, until })),
  };
}

/** Matches the names of a deployment's backends: its own name and eight digits of a replica's id. */
const toPattern = (name: string) => `${name}-________`;

async function countTokens(db: Database, name: string, since: number): Promise<number> {
  const sums = await db
    .selectFrom('usage_hours')
    .select(({ fn }) => [
      fn.sum('prompt_tokens').as('prompt'),
      fn.sum('completion_tokens').as('completion'),
    ])
    // By account, because the index begins with it.
    .where('account_id', 'in', ({ selectFrom }) => selectFrom('accounts').select('id'))
    .where('hour', '>=', Math.floor(since / hourMs) * hourMs)
    .where('backend', 'like', toPattern(name))
    .executeTakeFirstOrThrow();
  return Number(sums.prompt ?? 0) + Number(sums.completion ?? 0);
}

/**
 * How fast requests were answered since then, on every server, also those that still run. A request that began earlier
 * counts with the share of its time since then.
 */
export async function readRecent(db: Database, name: string, { since, until }: Period) {
  const accounts = db.selectFrom('accounts').select('id');
  const names = db.selectFrom('usage_names').select('ref');
  const end = sql<number>`case when status = 'running' then ${until} else at + duration_ms end`;
  const share = sql`case when at >= ${since} then 1.0 else (${end} - ${since}) * 1.0 / (${end} - at) end`;
  const all = db
    .selectFrom('usage_requests')
    .select([
      sql<number | null>`sum(completion_tokens * ${share})`.as('tokens'),
      sql<number | null>`sum(first_token_ms) filter (where at + first_token_ms >= ${since})`.as(
        'firstMs',
      ),
      sql<number>`count(first_token_ms) filter (where at + first_token_ms >= ${since})`.as(
        'firsts',
      ),
    ])
    // By account, because the index begins with it.
    .where('account_ref', 'in', names.where('name', 'in', accounts))
    .where('backend_ref', 'in', names.where('name', 'like', toPattern(name)))
    .where(end, '>', since);
  // Two queries, because each has its own index. What is only reserved was not generated yet.
  const found = await Promise.all([
    all
      .where('at', '>=', since - maxEarlierMs)
      .where('status', '!=', 'running')
      .executeTakeFirstOrThrow(),
    all.where('status', '=', 'running').where('reserved', '=', 0).executeTakeFirstOrThrow(),
  ]);
  const sumOf = (member: keyof (typeof found)[number]) =>
    found.reduce((sum, one) => sum + Number(one[member] ?? 0), 0);
  return {
    tokens_per_second: sumOf('tokens') / ((until - since) / 1_000),
    first_token_ms: sumOf('firsts') === 0 ? null : Math.round(sumOf('firstMs') / sumOf('firsts')),
  };
}
