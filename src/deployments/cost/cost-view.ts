// What a deployment served and cost lately, from the run times of its replicas and the usage of their backends.

import type { Database } from '#db/tables.ts';
import type { Stored } from '#deployments/rows.ts';
import type { CostView } from '#deployments/schema.ts';
import type { Clock } from '#lib/clock.ts';
import { toCost } from './cost.ts';
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
    ...(await readRecent(db, name, until - recentMs)),
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

/** How fast requests were answered that began since then and have ended, on every server. */
async function readRecent(db: Database, name: string, since: number) {
  const accounts = db.selectFrom('accounts').select('id');
  const names = db.selectFrom('usage_names').select('ref');
  const { tokens, firstMs } = await db
    .selectFrom('usage_requests')
    .select(({ fn }) => [
      fn.sum('completion_tokens').as('tokens'),
      fn.avg('first_token_ms').as('firstMs'),
    ])
    // By account, because the index begins with it.
    .where('account_ref', 'in', names.where('name', 'in', accounts))
    .where('at', '>=', since)
    .where('status', '!=', 'running')
    .where('backend_ref', 'in', names.where('name', 'like', toPattern(name)))
    .executeTakeFirstOrThrow();
  return {
    tokens_per_second: Number(tokens ?? 0) / (recentMs / 1_000),
    first_token_ms: firstMs === null ? null : Math.round(Number(firstMs)),
  };
}
