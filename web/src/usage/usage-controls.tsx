// What to look at: the span of time, its steps, the grouping, and the number that is plotted.

import { Group, SegmentedControl, Select } from '@mantine/core';
import type { UrlState } from '../browser/url-state.ts';
import { DateRangeForm } from '../components/date-range-form.tsx';
import {
  custom,
  maxDays,
  presets,
  type Range,
  stepMs,
  toDayText,
  usualRange,
} from './time-range.ts';
import { type Grouping, groupings } from './usage-data.ts';
import { type Metric, metricNames } from './usage-totals.ts';

interface ControlsProps {
  view: UrlState;
  range: Range;
  by: Grouping;
  metric: Metric;
  metrics: readonly Metric[];
}

export function Controls({ view, range, by, metric, metrics }: ControlsProps) {
  return (
    <Group align="flex-end" gap="sm">
      <TimeControls view={view} range={range} />
      <Select
        label="Steps"
        w={104}
        data={[
          { value: 'hour', label: 'Hours', disabled: isTooLongForHours(range) },
          { value: 'day', label: 'Days' },
        ]}
        value={range.step}
        onChange={(step) => view.set({ step })}
        allowDeselect={false}
      />
      <Select
        label="By"
        w={140}
        data={groupings}
        value={by}
        onChange={(value) => view.set({ by: value })}
        allowDeselect={false}
      />
      <Select
        label="Plot"
        w={132}
        data={metrics.map((value) => ({ value, label: metricNames[value] }))}
        value={metric}
        onChange={(value) => view.set({ metric: value })}
        allowDeselect={false}
      />
    </Group>
  );
}

const isTooLongForHours = ({ from, to }: Range) => to - from > maxDays.hour * stepMs.day;

function TimeControls({ view, range }: { view: UrlState; range: Range }) {
  const chosen = view.get('range') ?? usualRange;
  const days = { from: toDayText(range.from), to: toDayText(range.to - 1) };
  const choose = (value: string) =>
    view.set(
      value === custom.value
        ? { range: value, ...days, step: null }
        : { range: value, from: null, to: null, step: null },
    );
  return (
    <>
      <SegmentedControl
        aria-label="Time"
        data={[...presets.map(({ value, label }) => ({ value, label })), custom]}
        value={chosen}
        onChange={choose}
      />
      {chosen === custom.value && <DateRangeForm {...days} onChoose={view.set} />}
    </>
  );
}
