// The numbers behind the plot: one row for each group, and one for each step of each group.

import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { type Column, DataTable } from '../components/data-table.tsx';
import { type Range, toStepName } from './time-range.ts';
import { machineColumns, modelColumns } from './usage-columns.tsx';
import { type Grouping, groupings } from './usage-data.ts';
import { type Cell, type GroupTotal, type Metric, toGroupTotals } from './usage-totals.ts';

interface TablesProps {
  cells: Cell[];
  metric: Metric;
  range: Range;
  by: Grouping;
}

const pageSize = 48;
const loaded = { isPending: false, error: null, refetch: () => Promise.reject() };

export function Tables({ cells, metric, range, by }: TablesProps) {
  const [shown, setShown] = useState(pageSize);
  const numbers = by === 'machine' ? machineColumns : modelColumns;
  const groupName = groupings.find(({ value }) => value === by)?.label ?? '';
  const name: Column<{ label: string }> = {
    name: by === 'none' ? 'All' : groupName,
    cell: ({ label }) => (
      <Text size="sm" fw={500} className="breakable">
        {label}
      </Text>
    ),
  };
  const when: Column<Cell> = {
    name: range.step === 'hour' ? 'Hour (UTC)' : 'Day (UTC)',
    cell: ({ start }) => <span className="one-line">{toStepName(start, range.step)}</span>,
  };
  const newestFirst = cells
    .toSorted((one, other) => other.start - one.start)
    .map((cell) => ({ ...cell, id: `${cell.start} ${cell.group}` }));
  const title = range.step === 'hour' ? 'Hour by hour' : 'Day by day';
  return (
    <>
      <Stack gap="sm">
        <Title order={2} size="h4">
          In total
        </Title>
        <DataTable<GroupTotal>
          label="In total"
          query={loaded}
          rows={toGroupTotals(cells, metric)}
          columns={[name, ...numbers]}
          empty={null}
        />
      </Stack>
      <Stack gap="sm">
        <Title order={2} size="h4">
          {title}
        </Title>
        <DataTable
          label={title}
          query={loaded}
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
      </Stack>
    </>
  );
}
