// Numbers of one step and one group, adding them up, and turning them into a plot.

import { type Range, toStarts, toStepName } from './time-range.ts';

export interface Amounts {
  requests: number;
  errors: number;
  aborted: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  /** US dollars. */
  cost: number;
  /** The mean; null where nothing was timed. */
  first_token_ms: number | null;
  /** Of machines. */
  hours: number;
}

export interface Cell {
  start: number;
  /** What tells groups apart, and what they are called. */
  group: string;
  label: string;
  amounts: Amounts;
}

export const none: Amounts = {
  requests: 0,
  errors: 0,
  aborted: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cached_tokens: 0,
  cost: 0,
  first_token_ms: null,
  hours: 0,
};

export type Metric = 'tokens' | 'requests' | 'errors' | 'cost' | 'hours';

export const metricNames: Record<Metric, string> = {
  tokens: 'Tokens',
  requests: 'Requests',
  errors: 'Errors',
  cost: 'Cost',
  hours: 'Hours',
};

export const toMetric = (amounts: Amounts, metric: Metric): number =>
  metric === 'tokens' ? amounts.prompt_tokens + amounts.completion_tokens : amounts[metric];

function add(one: Amounts, other: Amounts): Amounts {
  return {
    requests: one.requests + other.requests,
    errors: one.errors + other.errors,
    aborted: one.aborted + other.aborted,
    prompt_tokens: one.prompt_tokens + other.prompt_tokens,
    completion_tokens: one.completion_tokens + other.completion_tokens,
    cached_tokens: one.cached_tokens + other.cached_tokens,
    cost: one.cost + other.cost,
    first_token_ms: meanOf(one, other),
    hours: one.hours + other.hours,
  };
}

/** Each mean counts as often as it has requests behind it. */
function meanOf(one: Amounts, other: Amounts): number | null {
  if (one.first_token_ms === null) return other.first_token_ms;
  if (other.first_token_ms === null) return one.first_token_ms;
  const [first, second] = [Math.max(1, one.requests), Math.max(1, other.requests)];
  return (one.first_token_ms * first + other.first_token_ms * second) / (first + second);
}

export const toTotal = (cells: Cell[]): Amounts =>
  cells.reduce((total, { amounts }) => add(total, amounts), none);

export interface GroupTotal {
  id: string;
  label: string;
  amounts: Amounts;
}

/** Those with the most first. */
export function toGroupTotals(cells: Cell[], metric: Metric): GroupTotal[] {
  const totals = new Map<string, GroupTotal>();
  for (const { group, label, amounts } of cells) {
    const before = totals.get(group)?.amounts ?? none;
    totals.set(group, { id: group, label, amounts: add(before, amounts) });
  }
  return [...totals.values()].sort(
    (one, other) =>
      toMetric(other.amounts, metric) - toMetric(one.amounts, metric) ||
      other.amounts.requests - one.amounts.requests,
  );
}

export interface Plot {
  series: { name: string; label: string; color: string }[];
  data: Record<string, number | string>[];
}

/** More colours than this can't be told apart: what is left is one series. */
const maxSeries = 7;
const rest = 'rest';

export function toPlot(cells: Cell[], metric: Metric, range: Range): Plot {
  const totals = toGroupTotals(cells, metric);
  const shown = totals.slice(0, maxSeries);
  // Groups are named by their place: a label may hold a dot, which the plot takes for a path.
  const nameOf = new Map(shown.map(({ id }, at) => [id, `group${at}`]));
  const series = shown.map(({ label }, at) => ({
    name: `group${at}`,
    label,
    color: `var(--series-${at + 1})`,
  }));
  if (totals.length > maxSeries) {
    const label = `${totals.length - maxSeries} others`;
    series.push({ name: rest, label, color: 'var(--series-rest)' });
  }
  const rows = new Map<number, Record<string, number | string>>();
  for (const start of toStarts(range)) rows.set(start, { at: toStepName(start, range.step) });
  for (const { start, group, amounts } of cells) {
    const row = rows.get(start);
    if (row === undefined) continue;
    const name = nameOf.get(group) ?? rest;
    row[name] = Number(row[name] ?? 0) + toMetric(amounts, metric);
  }
  return { series, data: [...rows.values()] };
}
