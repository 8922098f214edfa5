// The numbers of the account: requests now, tokens and errors of the last day, and the cost of the month. The
// month's totals are those of the usage page.

import { Anchor, Paper, SimpleGrid, Skeleton, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { toCount, toMoney, toPercent, toRate, toShortCount } from '#lib/text/format.ts';
import { useLive } from '../usage/samples.ts';
import { toLastDay, toStarts, toThisMonth } from '../usage/time-range.ts';
import { useTotals, useUsage } from '../usage/usage-data.ts';
import { type Metric, toMetric, toTotal } from '../usage/usage-totals.ts';
import { Budget } from './budget.tsx';
import { Sparkline } from './sparkline.tsx';

export function Tiles() {
  const live = useLive().data;
  const range = toLastDay(Date.now());
  const day = useUsage(range, 'none').data;
  const { models, machines } = useTotals(toThisMonth(Date.now()));
  if (day === undefined || models === undefined || machines === undefined) {
    return <Skeleton h={148} aria-busy="true" />;
  }
  const total = toTotal(day);
  const failed = toMetric(total, 'failed');
  const seconds = (live?.span_ms ?? 60_000) / 1000;
  const line = (metric: Metric) => {
    const byStart = new Map(day.map(({ start, totals }) => [start, toMetric(totals, metric)]));
    return toStarts(range).map((start) => byStart.get(start) ?? 0);
  };
  return (
    <SimpleGrid cols={{ base: 2, lg: 4 }} spacing={{ base: 'sm', sm: 'md' }} className="tiles">
      <Tile
        name="Requests per second"
        href="/usage/requests"
        value={toRate((live?.requests ?? 0) / seconds)}
        line={<Sparkline label="Requests per hour in the last day" values={line('requests')} />}
      >
        {toCount(total.requests)} in 24 hours · {toCount(models.requests)} this month
      </Tile>
      <Tile
        name="Tokens in 24 hours"
        href="/usage/metric=tokens"
        value={toShortCount(toMetric(total, 'tokens'))}
        line={<Sparkline label="Tokens per hour in the last day" values={line('tokens')} />}
      >
        {toRate((live?.tokens ?? 0) / seconds)} tokens/s now · {toCount(toMetric(models, 'tokens'))}{' '}
        this month
      </Tile>
      <Tile
        name="Failed in 24 hours"
        href="/usage/requests/status=failed"
        value={`${toCount(failed)} (${toPercent(failed, total.requests)})`}
        tone={failed > 0 ? 'warning' : undefined}
        line={<Sparkline label="Failures per hour in the last day" values={line('failed')} />}
      >
        {toCount((live?.errors ?? 0) - (live?.refused ?? 0))} in the last minute ·{' '}
        {toCount(total.refused)} refused (4xx)
      </Tile>
      <Tile
        name="Cost this month"
        href="/usage"
        value={toMoney(models.cost + machines.cost)}
        line={<Budget models={models.cost} machines={machines.cost} />}
      >
        {toMoney(models.cost)} models · {toMoney(machines.cost)} machines
      </Tile>
    </SimpleGrid>
  );
}

interface TileProps {
  name: string;
  href: string;
  value: string;
  tone?: 'warning' | undefined;
  line: ReactNode;
  children: ReactNode;
}

const Tile = ({ name, href, value, tone, line, children }: TileProps) => (
  <Paper withBorder p={{ base: 'sm', sm: 'md' }} className="tile">
    <Text size="xs" c="dimmed">
      {name}
    </Text>
    <Anchor component={Link} href={href} className="tile-value" data-tone={tone} underline="hover">
      {value}
    </Anchor>
    <Text size="xs" c="dimmed">
      {children}
    </Text>
    {line}
  </Paper>
);
