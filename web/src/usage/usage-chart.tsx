// A stacked bar chart of usage, one bar per interval. The tables hold the same numbers for screen readers.

import { BarChart, ChartTooltip } from '@mantine/charts';
import '@mantine/charts/styles.css';
import { toCount, toHours, toMoney, toShortCount } from '#lib/text/format.ts';
import type { ChartData } from './chart-data.ts';
import { type Metric, metricNames } from './usage-totals.ts';
import './usage.css';

interface UsageChartProps {
  data: ChartData;
  metric: Metric;
}

export function UsageChart({ data, metric }: UsageChartProps) {
  const toText = toMetricText(metric);
  const { series, rows } = data;
  const toAxis = toAxisText(metric);
  const labels = series.map(({ label }) => label).join(', ');
  return (
    <div
      role="img"
      aria-label={`Bar chart of ${metricNames[metric].toLowerCase()} over time: ${labels}. The tables below have the same numbers.`}
    >
      <BarChart
        h={300}
        data={rows}
        dataKey="at"
        type="stacked"
        series={series}
        withLegend={series.length > 1}
        legendProps={{ verticalAlign: 'bottom' }}
        valueFormatter={toText}
        yAxisProps={{
          width: toAxisWidth(rows, toAxis),
          tickFormatter: toAxis,
          allowDecimals: metric === 'cost' || metric === 'hours',
        }}
        xAxisProps={{ minTickGap: 24, interval: 'equidistantPreserveStart' }}
        barProps={{ isAnimationActive: false }}
        maxBarWidth={48}
        gridAxis="x"
        textColor="dimmed"
        accessibilityLayer={false}
        tooltipProps={{
          isAnimationActive: false,
          content: ({ label, payload }) => (
            <ChartTooltip
              label={label}
              payload={payload.filter(({ value }) => Number(value) > 0)}
              series={series}
              valueFormatter={toText}
            />
          ),
        }}
      />
    </div>
  );
}

/** Wide enough for small costs, which have many digits: about seven pixels per digit of a quarter of the highest bar. */
function toAxisWidth(rows: ChartData['rows'], toAxis: (value: number) => string): number {
  const sums = rows.map((row) =>
    Object.values(row).reduce<number>((sum, one) => sum + (typeof one === 'number' ? one : 0), 0),
  );
  const digits = toAxis(Math.max(...sums) / 4).length;
  return Math.max(64, 20 + digits * 7);
}

const toMetricText = (metric: Metric) => {
  if (metric === 'cost') return toMoney;
  if (metric === 'hours') return toHours;
  return toCount;
};

const toAxisText = (metric: Metric) => (value: number) => {
  if (metric === 'cost') return toMoney(Number(value.toPrecision(3)));
  return metric === 'hours' ? toHours(value) : toShortCount(value);
};
