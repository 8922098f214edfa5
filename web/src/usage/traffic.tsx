// The usage of one model or one key over time: numbers with latency percentiles, a chart, and its last errors.

import { Group, Paper, SegmentedControl, Skeleton } from '@mantine/core';
import { useMemo, useState } from 'react';
import { toCount, toMoney, toPercent } from '#lib/text/format.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Facts } from '../components/facts.tsx';
import { Section } from '../components/section.tsx';
import { toChartData } from './chart-data.ts';
import { LastErrors } from './last-errors.tsx';
import { toPercentileText, useLatency } from './samples.ts';
import { presets, toRange } from './time-range.ts';
import { UsageChart } from './usage-chart.tsx';
import { type Grouping, useUsage } from './usage-data.ts';
import type { Subject } from './usage-query.ts';
import { type Metric, metricNames, toMetric, toTotal } from './usage-totals.ts';

const metrics = ['requests', 'tokens', 'errors', 'cost'] as const satisfies Metric[];

interface TrafficProps {
  subject: Subject;
  by: Grouping;
}

export function Traffic({ subject, by }: TrafficProps) {
  const [preset, setPreset] = useState<string>('7d');
  const [metric, setMetric] = useState<Metric>('requests');
  const { from, to, step } = toRange(
    { range: preset, step: null, from: null, to: null },
    Date.now(),
  );
  const usage = useUsage({ from, to, step }, by, subject);
  const latency = useLatency(from, subject);
  const points = usage.data;
  const chart = useMemo(
    () => points && toChartData(points, metric, { from, to, step }),
    [points, metric, from, to, step],
  );
  const total = points && toTotal(points);
  return (
    <>
      <Section
        title="Traffic"
        actions={
          <Group gap="xs">
            <SegmentedControl
              aria-label="Metric"
              size="xs"
              data={metrics.map((value) => ({ value, label: metricNames[value] }))}
              value={metric}
              onChange={(value) => setMetric(value as Metric)}
            />
            <SegmentedControl
              aria-label="Time range"
              size="xs"
              data={presets.map(({ value, label }) => ({ value, label }))}
              value={preset}
              onChange={setPreset}
            />
          </Group>
        }
      >
        <ErrorNotice error={usage.error} onRetry={() => usage.refetch()} />
        {total === undefined ? (
          <Skeleton h={400} aria-busy={usage.isPending} />
        ) : (
          <Paper withBorder p={{ base: 'sm', sm: 'lg' }} className="traffic">
            <Facts
              facts={[
                ['Requests', toCount(total.requests)],
                ['Errors', `${toCount(total.errors)} (${toPercent(total.errors, total.requests)})`],
                ['Tokens', toCount(toMetric(total, 'tokens'))],
                ['Cost', toMoney(total.cost)],
                ['Latency p50 · p95', toPercentileText(latency.data?.duration_ms)],
                ['First token p50 · p95', toPercentileText(latency.data?.first_token_ms)],
              ]}
            />
            {chart && toMetric(total, metric) > 0 ? (
              <UsageChart data={chart} metric={metric} />
            ) : (
              <p className="chart-nothing">
                No {metricNames[metric].toLowerCase()} in this period.
              </p>
            )}
          </Paper>
        )}
      </Section>
      {total !== undefined && total.errors > 0 && <LastErrors subject={subject} from={from} />}
    </>
  );
}
