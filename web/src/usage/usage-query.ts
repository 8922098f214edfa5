// The question that is put to the server about what models did.

import type { Grouping } from '#accounts/usage/schema.ts';
import type { Range } from './time-range.ts';

export const toTimes = ({ from, to }: Pick<Range, 'from' | 'to'>) => ({
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
});

export const toUsageQuery = (range: Range, by: Grouping) =>
  new URLSearchParams({ ...toTimes(range), step: range.step, by }).toString();
