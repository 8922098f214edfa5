// Usage of one interval and one group, and adding it up.

export interface UsageTotals {
  requests: number;
  errors: number;
  /** Those of the errors that were refused. */
  refused: number;
  /** Requests that the client canceled. */
  aborted: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  /** US dollars. */
  cost: number;
  /** The mean; null if no request was timed. */
  first_token_ms: number | null;
  /** Hours that machines existed. */
  hours: number;
}

/** The usage of one group in the interval that begins at `start`. */
export interface UsagePoint {
  /** Milliseconds since the epoch. */
  start: number;
  /** The id of the group, e.g. of an API key. */
  group: string;
  label: string;
  totals: UsageTotals;
}

export const zeroTotals: UsageTotals = {
  requests: 0,
  errors: 0,
  refused: 0,
  aborted: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cached_tokens: 0,
  cost: 0,
  first_token_ms: null,
  hours: 0,
};

export type Metric = 'tokens' | 'requests' | 'errors' | 'failed' | 'cost' | 'hours';

export const metricNames: Record<Metric, string> = {
  tokens: 'Tokens',
  requests: 'Requests',
  errors: 'Errors',
  failed: 'Failed',
  cost: 'Cost',
  hours: 'Hours',
};

export function toMetric(totals: UsageTotals, metric: Metric): number {
  if (metric === 'tokens') return totals.prompt_tokens + totals.completion_tokens;
  return metric === 'failed' ? totals.errors - totals.refused : totals[metric];
}

function add(one: UsageTotals, other: UsageTotals): UsageTotals {
  return {
    requests: one.requests + other.requests,
    errors: one.errors + other.errors,
    refused: one.refused + other.refused,
    aborted: one.aborted + other.aborted,
    prompt_tokens: one.prompt_tokens + other.prompt_tokens,
    completion_tokens: one.completion_tokens + other.completion_tokens,
    cached_tokens: one.cached_tokens + other.cached_tokens,
    cost: one.cost + other.cost,
    first_token_ms: toMeanFirstToken(one, other),
    hours: one.hours + other.hours,
  };
}

/** Each mean is weighted by its number of requests. */
function toMeanFirstToken(one: UsageTotals, other: UsageTotals): number | null {
  if (one.first_token_ms === null) return other.first_token_ms;
  if (other.first_token_ms === null) return one.first_token_ms;
  const [first, second] = [Math.max(1, one.requests), Math.max(1, other.requests)];
  return (one.first_token_ms * first + other.first_token_ms * second) / (first + second);
}

export const toTotal = (points: UsagePoint[]): UsageTotals =>
  points.reduce((total, { totals }) => add(total, totals), zeroTotals);

export interface GroupTotals {
  id: string;
  label: string;
  totals: UsageTotals;
}

/** The totals of each group, highest first. */
export function toGroupTotals(points: UsagePoint[], metric: Metric): GroupTotals[] {
  const groups = new Map<string, GroupTotals>();
  for (const { group, label, totals } of points) {
    const before = groups.get(group)?.totals ?? zeroTotals;
    groups.set(group, { id: group, label, totals: add(before, totals) });
  }
  return [...groups.values()].sort(
    (one, other) =>
      toMetric(other.totals, metric) - toMetric(one.totals, metric) ||
      other.totals.requests - one.totals.requests,
  );
}
