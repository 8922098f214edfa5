// Query parameters of the usage endpoints.

import type { Grouping } from '#accounts/usage/schema.ts';
import type { TimeRange } from './time-range.ts';

export const toTimes = ({ from, to }: Pick<TimeRange, 'from' | 'to'>) => ({
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
});

export const toUsageQuery = (range: TimeRange, by: Grouping) =>
  new URLSearchParams({ ...toTimes(range), step: range.step, by }).toString();
