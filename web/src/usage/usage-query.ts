// Query parameters of the usage endpoints.

import type { Grouping } from '#accounts/usage/schema.ts';
import type { TimeRange } from './time-range.ts';

export const toTimes = ({ from, to }: Pick<TimeRange, 'from' | 'to'>) => ({
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
});

/** The model or the key that usage is limited to; neither means the whole account. */
export type Subject = { model?: string; key?: string };

export const toUsageQuery = (range: TimeRange, by: Grouping, subject: Subject = {}) =>
  new URLSearchParams({ ...toTimes(range), step: range.step, by, ...subject }).toString();
