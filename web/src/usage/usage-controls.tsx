// The controls of the usage page: time range, interval, grouping and metric.

import { Group, SegmentedControl, Select } from '@mantine/core';
import type { UrlState } from '../browser/url-state.ts';
import { DateRangeForm } from '../components/date-range-form.tsx';
import {
  custom,
  defaultRange,
  maxDays,
  presets,
  stepMs,
  type TimeRange,
  toDayText,
} from './time-range.ts';
import { type Grouping, groupings } from './usage-data.ts';
import { type Metric, metricNames } from './usage-totals.ts';

interface UsageControlsProps {
  urlState: UrlState;
  range: TimeRange;
  by: Grouping;
  metric: Metric;
  metrics: readonly Metric[];
}

export function UsageControls({ urlState, range, by, metric, metrics }: UsageControlsProps) {
  return (
    <Group align="flex-end" gap="sm">
      <TimeControls urlState={urlState} range={range} />
      <Select
        label="Interval"
        w={104}
        data={[
          { value: 'hour', label: 'Hourly', disabled: isTooLongForHours(range) },
          { value: 'day', label: 'Daily' },
        ]}
        value={range.step}
        onChange={(step) => urlState.set({ step })}
        allowDeselect={false}
      />
      <Select
        label="Group by"
        w={140}
        data={groupings}
        value={by}
        onChange={(value) => urlState.set({ by: value })}
        allowDeselect={false}
      />
      <Select
        label="Metric"
        w={132}
        data={metrics.map((value) => ({ value, label: metricNames[value] }))}
        value={metric}
        onChange={(value) => urlState.set({ metric: value })}
        allowDeselect={false}
      />
    </Group>
  );
}

const isTooLongForHours = ({ from, to }: TimeRange) => to - from > maxDays.hour * stepMs.day;

function TimeControls({ urlState, range }: { urlState: UrlState; range: TimeRange }) {
  const chosen = urlState.get('range') ?? defaultRange;
  const days = { from: toDayText(range.from), to: toDayText(range.to - 1) };
  const choose = (value: string) =>
    urlState.set(
      value === custom.value
        ? { range: value, ...days, step: null }
        : { range: value, from: null, to: null, step: null },
    );
  return (
    <>
      <SegmentedControl
        aria-label="Time range"
        className="time-range"
        data={[...presets.map(({ value, label }) => ({ value, label })), custom]}
        value={chosen}
        onChange={choose}
      />
      {chosen === custom.value && <DateRangeForm {...days} onChoose={urlState.set} />}
    </>
  );
}
