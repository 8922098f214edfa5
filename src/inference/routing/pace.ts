// How fast a backend works, measured by the responses it has completed. The lengths of prompts and
// responses are taken out, so that backends of one model can be compared though they get different
// requests.

import type { Clock } from '#lib/clock.ts';

/** A response, without the time for which the client kept it waiting. */
export interface Work {
  readonly durationMs: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** The client left before the response was complete: it may have been slower than this, but not faster. */
  readonly isPartial?: boolean;
}

export interface Pace {
  add(work: Work): void;
  /** Milliseconds for a unit of work; null if that is not known, or was measured too long ago. */
  read(): number | null;
}

/** A backend this many times slower than the fastest of its model is slow. Less may come of the requests it gets. */
export const slowFrom = 3;
/** Differences of less than two seconds in a thousand tokens come and go with the load of computers. */
const slowFromMs = 2;

/** Weight of the newest response in the average. */
const newest = 0.2;
/** What a response costs besides its tokens, in generated tokens. */
const fixedUnits = 32;
/** Prompt tokens that are read in the time that one is generated. */
const promptPerUnit = 50;
/** A request that its client gave up after this long says something about a backend of which nothing else is known. */
const longMs = 5_000;
/** A backend that got no request for this long, or for this many times its last response, is tried again. */
const staleMs = 60_000;
const staleTimes = 20;

export function createPace(clock: Clock): Pace {
  let average: number | null = null;
  let staleAt = 0;
  return {
    add({ durationMs, promptTokens, completionTokens, isPartial = false }) {
      const units = fixedUnits + promptTokens / promptPerUnit + completionTokens;
      const pace = durationMs / units;
      if (isPartial && (average === null ? durationMs < longMs : pace <= average)) return;
      const isStale = clock.now() >= staleAt;
      average = average === null || isStale ? pace : average + newest * (pace - average);
      staleAt = clock.now() + Math.max(staleMs, staleTimes * durationMs);
    },
    read: () => (clock.now() < staleAt ? average : null),
  };
}

/** How many times slower than `fastest` the pace is; 1 if the two count as equal or one is not known. */
export function slownessOf(pace: number | null, fastest: number | null): number {
  if (pace === null || fastest === null || fastest <= 0) return 1;
  const ratio = pace / fastest;
  return ratio < slowFrom || pace - fastest < slowFromMs ? 1 : ratio;
}
