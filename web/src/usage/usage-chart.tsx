// The plot: stacked bars, one for each step. Those who can't see it have the same numbers in the tables.

import { BarChart, ChartTooltip } from '@mantine/charts';
import '@mantine/charts/styles.css';
import { toCount, toHours, toMoney, toShortCount } from '../format/numbers.ts';
import { type Metric, metricNames, type Plot } from './usage-totals.ts';
import './usage.css';

interface ChartProps {
  plot: Plot;
  metric: Metric;
}

export function Chart({ plot, metric }: ChartProps) {
  const toText = toMetricText(metric);
  const { series, data } = plot;
  const toAxis = toAxisText(metric);
  const labels = series.map(({ label }) => label).join(', ');
  return (
    <div
      role="img"
      aria-label={`Bars of ${metricNames[metric].toLowerCase()} over time: ${labels}. The tables below hold the same numbers.`}
    >
      <BarChart
        h={300}
        data={data}
        dataKey="at"
        type="stacked"
        series={series}
        withLegend={series.length > 1}
        legendProps={{ verticalAlign: 'bottom' }}
        valueFormatter={toText}
        yAxisProps={{ width: toAxisWidth(data, toAxis), tickFormatter: toAxis }}
        xAxisProps={{ minTickGap: 24 }}
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

/** Small costs have long names: about seven pixels for each digit of a quarter of the highest bar. */
function toAxisWidth(data: Plot['data'], toAxis: (value: number) => string): number {
  const sums = data.map((row) =>
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
