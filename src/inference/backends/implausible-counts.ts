// How often a backend reported token counts that can't be true, or more than were reserved, for the dashboard, the CLI,
// metrics and the log.
// Counted in slots of one hour and logged once an hour, so that a backend that is always wrong costs little.

import type { FastifyBaseLogger } from 'fastify';
import type { ImplausibleCounts } from '#inference/engines/upstream/usage.ts';
import type { Clock } from '#lib/clock.ts';
import { RecentCounts } from '#lib/telemetry/recent-counts.ts';

export interface ImplausibleRecord {
  add(counts: ImplausibleCounts): void;
  /** Number in the last 24 hours. */
  recent(): number;
  /** Number since this server started. */
  total(): number;
}

const hourMs = 3_600_000;

export function createImplausibleRecord(
  clock: Clock,
  log: FastifyBaseLogger,
  backend: string,
): ImplausibleRecord {
  const counts = new RecentCounts(clock, hourMs, 24);
  let total = 0;
  let loggedHour = Number.NEGATIVE_INFINITY;

  return {
    add({ reported, bounds, responseBytes }) {
      counts.add();
      total += 1;
      const hour = Math.floor(clock.now() / hourMs);
      if (hour === loggedHour) return;
      loggedHour = hour;
      const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details } = reported;
      const cached_tokens = prompt_tokens_details?.cached_tokens ?? null;
      const named = { prompt_tokens, completion_tokens, total_tokens, cached_tokens };
      log.warn(
        {
          backend,
          reported: withoutNaN(named),
          bounds,
          response_bytes: responseBytes,
          times: total,
        },
        bounds === undefined
          ? 'backend reported more tokens than were reserved; no more is charged (logged once an hour)'
          : 'backend reported implausible token counts; Millrace counted instead (logged once an hour)',
      );
    },
    recent: () => counts.sum(),
    total: () => total,
  };
}

/** JSON has no NaN. */
const withoutNaN = (counts: Record<string, number | null>) =>
  Object.fromEntries(
    Object.entries(counts).map(([name, count]) => [name, Number.isNaN(count) ? 'no count' : count]),
  );

/** The record of local engines, whose counts are exact. */
export const neverImplausible: ImplausibleRecord = {
  add() {},
  recent: () => 0,
  total: () => 0,
};
