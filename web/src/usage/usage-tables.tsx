// The numbers behind the chart: one row per group, and one per interval and group.

import { Button, Group, Text } from '@mantine/core';
import { useState } from 'react';
import { type Column, DataTable, NameCell } from '../components/data-table.tsx';
import { Section } from '../components/section.tsx';
import { type TimeRange, toIntervalName } from './time-range.ts';
import { machineColumns, modelColumns } from './usage-columns.tsx';
import { type Grouping, groupings } from './usage-data.ts';
import { type GroupTotals, type Metric, toGroupTotals, type UsagePoint } from './usage-totals.ts';

interface UsageTablesProps {
  points: UsagePoint[];
  metric: Metric;
  range: TimeRange;
  by: Grouping;
}

const pageSize = 48;

export function UsageTables({ points, metric, range, by }: UsageTablesProps) {
  const [shown, setShown] = useState(pageSize);
  const numbers = by === 'machine' ? machineColumns : modelColumns;
  const groupName = groupings.find(({ value }) => value === by)?.label ?? '';
  const name: Column<{ label: string }> = {
    name: by === 'none' ? 'All' : groupName,
    cell: ({ label }) => <NameCell name={label} />,
  };
  const when: Column<UsagePoint> = {
    name: range.step === 'hour' ? 'Hour (UTC)' : 'Day (UTC)',
    cell: ({ start }) => <span className="one-line">{toIntervalName(start, range.step)}</span>,
  };
  const newestFirst = points
    .toSorted((one, other) => other.start - one.start)
    .map((point) => ({ ...point, id: `${point.start} ${point.group}` }));
  const title = range.step === 'hour' ? 'By hour' : 'By day';
  return (
    <>
      <Section title="Totals">
        <DataTable<GroupTotals>
          label="Totals"
          rows={toGroupTotals(points, metric)}
          columns={[name, ...numbers]}
          empty={null}
        />
      </Section>
      <Section title={title}>
        <DataTable
          label={title}
          rows={newestFirst.slice(0, shown)}
          columns={by === 'none' ? [when, ...numbers] : [when, name, ...numbers]}
          empty={null}
        />
        {newestFirst.length > shown && (
          <Group>
            <Button variant="default" onClick={() => setShown(shown + pageSize)}>
              Show older
            </Button>
            <Text size="sm" c="dimmed">
              {shown} of {newestFirst.length} rows
            </Text>
          </Group>
        )}
      </Section>
    </>
  );
}
