// What a deployment cost: the time that its replicas ran, the price of their machines, and the tokens that they served.
// Pure.

import type { DeploymentRunRow } from '#db/tables/deployment-row.ts';

export interface Period {
  /** Unix milliseconds. */
  readonly since: number;
  readonly until: number;
}

export interface Cost {
  /** Sum over all replicas. */
  readonly engineMs: number;
  readonly machineCents: number;
  /** Time without any replica. */
  readonly idleMs: number;
}

type Run = Pick<DeploymentRunRow, 'started_at' | 'seen_at' | 'hourly_cents'>;

const hourMs = 3_600_000;

export function toCost(runs: readonly Run[], { since, until }: Period): Cost {
  let engineMs = 0;
  let machineCents = 0;
  let idleMs = 0;
  let busyUntil = since;
  for (const run of runs.toSorted((one, other) => one.started_at - other.started_at)) {
    const from = Math.max(since, run.started_at);
    const to = Math.min(until, run.seen_at);
    if (to <= from) continue;
    engineMs += to - from;
    machineCents += ((to - from) / hourMs) * run.hourly_cents;
    idleMs += Math.max(0, from - busyUntil);
    busyUntil = Math.max(busyUntil, to);
  }
  return { engineMs, machineCents, idleMs: idleMs + Math.max(0, until - busyUntil) };
}
