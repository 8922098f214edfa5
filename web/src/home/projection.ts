// The cost of a month that is not over.

export interface RecentCost {
  /** US dollars from `since` until now. */
  cost: number;
  /** Milliseconds since the epoch. */
  since: number;
}

/** What a month will have cost if the rest of it goes on at the recent rate. Rounded to cents. */
export function toProjection(soFar: number, recent: RecentCost, now: number): number {
  const date = new Date(now);
  const end = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  const perMs = recent.cost / Math.max(1, now - recent.since);
  return Math.round((soFar + perMs * (end - now)) * 100) / 100;
}
