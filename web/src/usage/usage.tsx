// Usage of models and machines over time, as a chart and tables, and the list of single requests.

import { Button, Paper, Skeleton, Tabs } from '@mantine/core';
import { useMemo } from 'react';

import { Redirect, useLocation } from 'wouter';

import { download } from '../browser/download.ts';
import { type UrlState, useUrlState } from '../browser/url-state.ts';
import { EmptyState } from '../components/empty-state.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Page } from '../components/page.tsx';
import { toChartData } from './chart-data.ts';
import { toMachineCsv } from './machine-csv.ts';
import { RequestLog } from './request-log.tsx';
import { type TimeRange, toDayText, toRange } from './time-range.ts';
import { UsageChart } from './usage-chart.tsx';
import { UsageControls } from './usage-controls.tsx';
import { type Grouping, groupings, useUsage } from './usage-data.ts';
import { toUsageQuery } from './usage-query.ts';
import { UsageSummary } from './usage-summary.tsx';
import { UsageTables } from './usage-tables.tsx';
import { type Metric, metricNames, type UsagePoint } from './usage-totals.ts';

const modelMetrics = ['tokens', 'requests', 'errors', 'cost'] as const;
const machineMetrics = ['cost', 'hours'] as const;

/** The list of requests has an address of its own, which its filters follow. */
const requestsPath = '/usage/requests';

export default function UsagePage() {
  const [location, navigate] = useLocation();
  const totals = useUrlState('/usage');
  const requests = useUrlState(requestsPath);
  const isRequests = location === requestsPath;
  if (totals.get('tab') === 'requests') return <Redirect to={requestsPath} replace />;
  return (
    <Page
      title="Usage"
      description="The usage of models and machines and its cost. Hours and days are in UTC."
    >
      <Tabs
        value={isRequests ? 'requests' : 'totals'}
        onChange={(value) => navigate(value === 'requests' ? requestsPath : '/usage')}
        keepMounted={false}
      >
        <Tabs.List mb="lg">
          <Tabs.Tab value="totals">Over time</Tabs.Tab>
          <Tabs.Tab value="requests">Requests</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="totals">
          <OverTime urlState={totals} />
        </Tabs.Panel>
        <Tabs.Panel value="requests">
          <RequestLog urlState={requests} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function OverTime({ urlState }: { urlState: UrlState }) {
  const [kind, step] = [urlState.get('range'), urlState.get('step')];
  const [from, to] = [urlState.get('from'), urlState.get('to')];
  // The range ends with the current interval, so it is the same at every render within the interval.
  const range = toRange({ range: kind, step, from, to }, Date.now());
  const by = groupings.find(({ value }) => value === urlState.get('by'))?.value ?? 'model';
  const metrics: readonly Metric[] = by === 'machine' ? machineMetrics : modelMetrics;
  const metric = metrics.find((one) => one === urlState.get('metric')) ?? metrics[0] ?? 'cost';
  const usage = useUsage(range, by);
  return (
    <div className="stack">
      <UsageControls urlState={urlState} range={range} by={by} metric={metric} metrics={metrics} />
      <UsageSummary range={range} />
      {usage.isPending && <Skeleton h={480} aria-busy="true" />}
      <ErrorNotice error={usage.error} onRetry={() => usage.refetch()} />
      {usage.data?.length === 0 && <NoUsage by={by} />}
      {usage.data && usage.data.length > 0 && (
        <UsageView points={usage.data} range={range} by={by} metric={metric} />
      )}
    </div>
  );
}

interface UsageViewProps {
  points: UsagePoint[];
  range: TimeRange;
  by: Grouping;
  metric: Metric;
}

function UsageView({ points, range, by, metric }: UsageViewProps) {
  const { from, to, step } = range;
  const chart = useMemo(
    () => toChartData(points, metric, { from, to, step }),
    [points, metric, from, to, step],
  );
  const file = `usage-by-${by}-${toDayText(from)}-${toDayText(to - 1)}.csv`;
  const csv =
    by === 'machine' ? (
      <Button
        variant="default"
        size="xs"
        onClick={() => download(file, toMachineCsv(points), 'text/csv;charset=utf-8')}
      >
        Download CSV
      </Button>
    ) : (
      <Button
        variant="default"
        size="xs"
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
        <div className="chart-space">
          {hasValues(chart.rows) ? (
            <UsageChart data={chart} metric={metric} />
          ) : (
            <p className="chart-nothing">No {metricNames[metric].toLowerCase()} in this period.</p>
          )}
        </div>
      </Paper>
      <UsageTables points={points} metric={metric} range={range} by={by} csv={csv} />
    </>
  );
}

const hasValues = (rows: Record<string, number | string>[]) =>
  rows.some((row) => Object.values(row).some((value) => typeof value === 'number' && value > 0));

const NoUsage = ({ by }: { by: Grouping }) =>
  by === 'machine' ? (
    <EmptyState title="No machines in this period" art="machine">
      Machines are counted by the second from launch to termination, at their price at launch.
      Choose a longer period, or launch a machine.
    </EmptyState>
  ) : (
    <EmptyState title="No usage in this period" art="pulse">
      Requests to models are counted here within moments, whether they come from a program with an
      API key or from the playground. Choose a longer period, or send a request.
    </EmptyState>
  );
