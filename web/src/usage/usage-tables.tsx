// The numbers behind the chart: one row per group, and one per interval and group.

import { Anchor } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { type Column, DataTable, NameCell } from '../components/data-table.tsx';
import { Section } from '../components/section.tsx';
import { toModelPath } from '../models/backends.ts';
import { type TimeRange, toIntervalName } from './time-range.ts';
import { machineColumns, modelColumns } from './usage-columns.tsx';
import { type Grouping, groupings } from './usage-data.ts';
import { type GroupTotals, type Metric, toGroupTotals, type UsagePoint } from './usage-totals.ts';

interface UsageTablesProps {
  points: UsagePoint[];
  metric: Metric;
  range: TimeRange;
  by: Grouping;
  /** The button that downloads the numbers. */
  csv: ReactNode;
}

export function UsageTables({ points, metric, range, by, csv }: UsageTablesProps) {
  const numbers = by === 'machine' ? machineColumns : modelColumns;
  const groupName = groupings.find(({ value }) => value === by)?.label ?? '';
  const name: Column<{ id: string; group?: string; label: string }> = {
    name: by === 'none' ? 'All' : groupName,
    value: ({ label }) => label,
    cell: ({ id, group = id, label }) => <GroupName by={by} group={group} label={label} />,
  };
  const when: Column<UsagePoint> = {
    name: range.step === 'hour' ? 'Hour (UTC)' : 'Day (UTC)',
    value: ({ start }) => start,
    cell: ({ start }) => <span className="one-line">{toIntervalName(start, range.step)}</span>,
  };
  const newestFirst = points
    .toSorted((one, other) => other.start - one.start)
    .map((point) => ({ ...point, id: `${point.start} ${point.group}` }));
  const title = range.step === 'hour' ? 'By hour' : 'By day';
  return (
    <>
      <Section title="Totals" actions={csv}>
        <DataTable<GroupTotals>
          label="Totals"
          name="totals-"
          rows={toGroupTotals(points, metric)}
          columns={[name, ...numbers]}
          empty={null}
        />
      </Section>
      <Section title={title}>
        <DataTable
          label={title}
          name="intervals-"
          rows={newestFirst}
          columns={by === 'none' ? [when, ...numbers] : [when, name, ...numbers]}
          empty={null}
        />
      </Section>
    </>
  );
}

/** Models and keys have pages of their own. The empty group has none: unknown models, or sessions. */
function GroupName({ by, group, label }: { by: Grouping; group: string; label: string }) {
  if (group === '' || (by !== 'model' && by !== 'key')) return <NameCell name={label} />;
  const href = by === 'model' ? toModelPath(group) : `/api-keys/${group}`;
  return (
    <Anchor component={Link} href={href} size="sm" fw={500} className="breakable">
      {label}
    </Anchor>
  );
}
