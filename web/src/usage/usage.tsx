// Usage: what was used when and by what, plotted and in numbers, and the single requests behind it.

import { Button, Paper, Skeleton, Tabs } from '@mantine/core';
import { useMemo } from 'react';
import { download } from '../browser/download.ts';
import { type UrlState, useUrlState } from '../browser/url-state.ts';
import { EmptyState } from '../components/data-table.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Page } from '../components/page.tsx';
import { toMachineCsv } from './machine-csv.ts';
import { Requests } from './request-log.tsx';
import { type Range, toDayText, toRange } from './time-range.ts';
import { Chart } from './usage-chart.tsx';
import { Controls } from './usage-controls.tsx';
import { type Grouping, groupings, useCells } from './usage-data.ts';
import { toUsageQuery } from './usage-query.ts';
import { Totals } from './usage-summary.tsx';
import { Tables } from './usage-tables.tsx';
import { type Cell, type Metric, metricNames, toPlot, toTotal } from './usage-totals.ts';

const modelMetrics = ['tokens', 'requests', 'errors', 'cost'] as const;
const machineMetrics = ['cost', 'hours'] as const;

export default function UsagePage() {
  const view = useUrlState('/usage');
  const tab = view.get('tab') === 'requests' ? 'requests' : 'totals';
  return (
    <Page
      title="Usage"
      description="What models and machines did, and what it cost. Hours and days are UTC."
    >
      <Tabs
        value={tab}
        onChange={(value) => view.set({ tab: value === 'requests' ? value : null })}
        keepMounted={false}
      >
        <Tabs.List mb="lg">
          <Tabs.Tab value="totals">Over time</Tabs.Tab>
          <Tabs.Tab value="requests">Requests</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="totals">
          <OverTime view={view} />
        </Tabs.Panel>
        <Tabs.Panel value="requests">
          <Requests view={view} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function OverTime({ view }: { view: UrlState }) {
  const [kind, step] = [view.get('range'), view.get('step')];
  const [from, to] = [view.get('from'), view.get('to')];
  // The edge is the end of a step: asking the clock at every rendering gives the same answer within one.
  const range = toRange({ range: kind, step, from, to }, Date.now());
  const by = groupings.find(({ value }) => value === view.get('by'))?.value ?? 'model';
  const metrics: readonly Metric[] = by === 'machine' ? machineMetrics : modelMetrics;
  const metric = metrics.find((one) => one === view.get('metric')) ?? metrics[0] ?? 'cost';
  const cells = useCells(range, by);
  return (
    <div className="stack">
      <Controls view={view} range={range} by={by} metric={metric} metrics={metrics} />
      {cells.isPending && <Skeleton h={480} aria-busy="true" />}
      <ErrorNotice error={cells.error} onRetry={() => cells.refetch()} />
      {cells.data?.length === 0 && <Nothing by={by} />}
      {cells.data && cells.data.length > 0 && (
        <Shown cells={cells.data} range={range} by={by} metric={metric} />
      )}
    </div>
  );
}

interface ShownProps {
  cells: Cell[];
  range: Range;
  by: Grouping;
  metric: Metric;
}

function Shown({ cells, range, by, metric }: ShownProps) {
  const { from, to, step } = range;
  const plot = useMemo(
    () => toPlot(cells, metric, { from, to, step }),
    [cells, metric, from, to, step],
  );
  const file = `usage-by-${by}-${toDayText(from)}-${toDayText(to - 1)}.csv`;
  const csv =
    by === 'machine' ? (
      <Button
        variant="default"
        onClick={() => download(file, toMachineCsv(cells), 'text/csv;charset=utf-8')}
      >
        Download CSV
      </Button>
    ) : (
      <Button
        variant="default"
        component="a"
        href={`/dashboard/api/usage.csv?${toUsageQuery(range, by)}`}
        download={file}
      >
        Download CSV
      </Button>
    );
  return (
    <>
      <Paper withBorder p={{ base: 'sm', sm: 'lg' }}>
        <div className="chart-head">
          <Totals total={toTotal(cells)} by={by} />
          {csv}
        </div>
        <div className="chart-space">
          {hasAny(plot.data) ? (
            <Chart plot={plot} metric={metric} />
          ) : (
            <p className="chart-nothing">No {metricNames[metric].toLowerCase()} in this time.</p>
          )}
        </div>
      </Paper>
      <Tables cells={cells} metric={metric} range={range} by={by} />
    </>
  );
}

const hasAny = (data: Record<string, number | string>[]) =>
  data.some((row) => Object.values(row).some((value) => typeof value === 'number' && value > 0));

const Nothing = ({ by }: { by: Grouping }) =>
  by === 'machine' ? (
    <EmptyState title="No machines in this time">
      Machines count from their launch to their end, by the second, at the price they were launched
      for. Choose a longer time, or launch one.
    </EmptyState>
  ) : (
    <EmptyState title="Nothing was used in this time">
      Each request to a model is counted here within a moment, whether it came from a program with a
      key or from the playground. Choose a longer time, or make a request.
    </EmptyState>
  );
