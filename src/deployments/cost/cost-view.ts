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
}

const hourMs = 3_600_000;
const periodMs = 30 * 24 * hourMs;

export async function readCost(
  { db, clock, runs }: CostParts,
  { id, name, createdAt }: Stored,
): Promise<CostView> {
  const until = clock.now();
  const since = Math.max(createdAt, until - periodMs);
  const cost = toCost(await runs.list(id, since), { since, until });
  const tokens = await countTokens(db, name, since);
  const dollars = cost.machineCents / 100;
  return {
    since: new Date(since).toISOString(),
    tokens,
    engine_seconds: Math.round(cost.engineMs / 1_000),
    machine_dollars: dollars,
    dollars_per_million_tokens: tokens === 0 || dollars === 0 ? null : (dollars / tokens) * 1e6,
    idle_hours: cost.idleMs / hourMs,
  };
}

/** Backends of replicas are called after the deployment and eight digits of their id; on other servers, after the deployment. */
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
    .where((row) => row.or([row('backend', 'like', `${name}-________`), row('backend', '=', name)]))
    .executeTakeFirstOrThrow();
  return Number(sums.prompt ?? 0) + Number(sums.completion ?? 0);
}
