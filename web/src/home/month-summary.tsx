// A summary of this month on the home page: cost, running machines, and requests on the last seven days.

import { Anchor, Group, Paper, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { UsageSummary } from '#accounts/usage/schema.ts';
import type { Instance } from '#cloud/schema.ts';
import { get, type List } from '../api.ts';
import { useAccountLimits } from '../api-keys/limits.ts';
import { toCounted, toMoney } from '../format/numbers.ts';
import { toRange, toStarts } from '../usage/time-range.ts';
import { toUsageQuery } from '../usage/usage-query.ts';

export function MonthSummary() {
  const account = useAccountLimits();
  const machines = useMachineSummary();
  const days = useDailyRequests();
  // The summary is not essential to the home page, so it is left out if it fails to load.
  if (account.isError || machines.isError) return null;
  if (account.isPending || machines.isPending) return <Skeleton h={58} aria-busy="true" />;
  const { cost, tokens, requests } = account.data.spend;
  const { running, cost: machineCost } = machines.data;
  return (
    <Paper withBorder px="lg" py="sm">
      <Group justify="space-between" gap="md">
        <Text size="sm">
          Cost this month:{' '}
          <Anchor component={Link} href="/usage" underline="always" size="sm">
            {toMoney(cost + machineCost)}
          </Anchor>{' '}
          ({toMoney(cost)} for {toCounted(tokens, 'token')} in {toCounted(requests, 'request')},{' '}
          {toMoney(machineCost)} for machines).{' '}
          <Anchor component={Link} href="/machines" underline="always" size="sm">
            {toCounted(running, 'machine')}
          </Anchor>{' '}
          running.
        </Text>
        {days.data && <Sparkline values={days.data} />}
      </Group>
    </Paper>
  );
}

function useMachineSummary() {
  return useQuery({
    queryKey: ['machines-this-month'],
    queryFn: async () => {
      const now = new Date();
      const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()));
      const span = new URLSearchParams({ from: first.toISOString(), to: now.toISOString() });
      const [usage, instances] = await Promise.all([
        get<{ total: { cents: number } }>(`/dashboard/api/usage/machines?${span}`),
        get<List<Instance>>('/api/v1/instances'),
      ]);
      const running = instances.data.filter(({ status }) => status === 'active').length;
      return { cost: usage.total.cents / 100, running };
    },
  });
}

/** The number of requests on each of the last seven days. */
function useDailyRequests() {
  const range = toRange({ range: '7d', step: 'day', from: null, to: null }, Date.now());
  return useQuery({
    queryKey: ['usage', range, 'none', 'days'],
    queryFn: async () => {
      const { data } = await get<UsageSummary>(
        `/dashboard/api/usage?${toUsageQuery(range, 'none')}`,
      );
      const byStart = new Map(data.map(({ start, requests }) => [Date.parse(start), requests]));
      return toStarts(range).map((start) => byStart.get(start) ?? 0);
    },
  });
}

const size = { width: 120, height: 28 };

/** Plain SVG: the chart library is larger than the rest of this page. */
function Sparkline({ values }: { values: number[] }) {
  const highest = Math.max(1, ...values);
  const width = size.width / values.length;
  return (
    <svg
      {...size}
      role="img"
      aria-label={`Requests per day over the last seven days: ${values.join(', ')}`}
    >
      {values.map((value, at) => {
        const height = Math.max(2, (value / highest) * size.height);
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a day is identified by its position
            key={at}
            x={at * width + 2}
            y={size.height - height}
            width={width - 4}
            height={height}
            rx={2}
            fill="var(--mantine-color-anchor)"
          />
        );
      })}
    </svg>
  );
}
