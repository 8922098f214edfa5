// Usage as the series and rows of a stacked bar chart.

import { type TimeRange, toIntervalName, toStarts } from './time-range.ts';
import { type Metric, toGroupTotals, toMetric, type UsagePoint } from './usage-totals.ts';

export interface ChartData {
  series: { name: string; label: string; color: string }[];
  /** One row per interval, with a value for each series. */
  rows: Record<string, number | string>[];
}

/** More colors than this are hard to tell apart, so the smallest groups share one series. */
const maxSeries = 7;
const others = 'others';

export function toChartData(points: UsagePoint[], metric: Metric, range: TimeRange): ChartData {
  const groups = toGroupTotals(points, metric);
  const shown = groups.slice(0, maxSeries);
  // Series are named by position: the chart library would read a dot in a label as a path.
  const nameOf = new Map(shown.map(({ id }, at) => [id, `group${at}`]));
  const series = shown.map(({ label }, at) => ({
    name: `group${at}`,
    label,
    color: `var(--series-${at + 1})`,
  }));
  if (groups.length > maxSeries) {
    const label = `${groups.length - maxSeries} others`;
    series.push({ name: others, label, color: 'var(--series-rest)' });
  }
  const rows = new Map<number, Record<string, number | string>>();
  for (const start of toStarts(range)) rows.set(start, { at: toIntervalName(start, range.step) });
  for (const { start, group, totals } of points) {
    const row = rows.get(start);
    if (row === undefined) continue;
    const name = nameOf.get(group) ?? others;
    row[name] = Number(row[name] ?? 0) + toMetric(totals, metric);
  }
  return { series, rows: [...rows.values()] };
}
