// How often a backend reported token counts that can't be true, for the dashboard, the CLI, metrics and the log.
// Counted in slots of one hour and logged once an hour, so that a backend that is always wrong costs little.

import type { FastifyBaseLogger } from 'fastify';
import type { ImplausibleCounts } from '#inference/engines/upstream/usage.ts';
import type { Clock } from '#lib/clock.ts';

export interface ImplausibleRecord {
  add(counts: ImplausibleCounts): void;
  /** Number in the last 24 hours. */
  recent(): number;
  /** Number since this server started. */
  total(): number;
}

const hourMs = 3_600_000;
const hours = 24;

export function createImplausibleRecord(
  clock: Clock,
  log: FastifyBaseLogger,
  backend: string,
): ImplausibleRecord {
  /** The hour that each slot counts. */
  const hourOf = new Float64Array(hours);
  const counts = new Uint32Array(hours);
  let total = 0;
  let loggedHour = Number.NEGATIVE_INFINITY;
  const hourNow = () => Math.floor(clock.now() / hourMs);

  return {
    add({ reported, bounds, responseBytes }) {
      const hour = hourNow();
      const slot = hour % hours;
      if (hourOf[slot] !== hour) {
        hourOf[slot] = hour;
        counts[slot] = 0;
      }
      counts[slot] = (counts[slot] as number) + 1;
      total += 1;
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
        'backend reported implausible token counts; Millrace counted instead (logged once an hour)',
      );
    },
    recent() {
      const from = hourNow() - hours;
      let sum = 0;
      for (let slot = 0; slot < hours; slot++) {
        if ((hourOf[slot] as number) > from) sum += counts[slot] as number;
      }
      return sum;
    },
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
