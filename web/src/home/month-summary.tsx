// A summary of this month on the home page: cost, running machines, and requests on the last seven days.

import { Anchor, Group, Paper, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { UsageSummary } from '#accounts/usage/schema.ts';
import { get } from '../api.ts';
import { toCounted, toMoney } from '../format/numbers.ts';
import { useInstances } from '../machines/instances.ts';
import { toRange, toStarts, toThisMonth } from '../usage/time-range.ts';
import { useTotals } from '../usage/usage-data.ts';
import { toUsageQuery } from '../usage/usage-query.ts';

export function MonthSummary() {
  const { models, machines, error } = useTotals(toThisMonth(Date.now()));
  const instances = useInstances();
  const days = useDailyRequests();
  // The summary is not essential to the home page, so it is left out if it fails to load.
  if (error ?? instances.error) return null;
  if (models === undefined || machines === undefined || instances.data === undefined) {
    return <Skeleton h={58} aria-busy="true" />;
  }
  const tokens = models.prompt_tokens + models.completion_tokens;
  const running = instances.data.data.filter(({ status }) => status === 'active').length;
  return (
    <Paper withBorder px="lg" py="sm">
      <Group justify="space-between" gap="md">
        <Text size="sm">
          Cost this month:{' '}
          <Anchor component={Link} href="/usage" underline="always" size="sm">
            {toMoney(models.cost + machines.cost)}
          </Anchor>{' '}
          ({toMoney(models.cost)} for {toCounted(tokens, 'token')} in{' '}
          {toCounted(models.requests, 'request')}, {toMoney(machines.cost)} for machines).{' '}
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
