// The question that is put to the server about what models did, and the shape of its answer.

import type { Amounts } from './amounts.ts';
import type { Range, Step } from './range.ts';

export type ModelGrouping = 'model' | 'key' | 'backend' | 'none';

export interface UsageBucket extends Omit<Amounts, 'hours'> {
  start: string;
  group: string | null;
  label: string | null;
}

export interface Usage {
  from: string;
  to: string;
  step: Step;
  by: ModelGrouping;
  data: UsageBucket[];
}

export const toTimes = ({ from, to }: Range) => ({
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
});

export const toUsageQuery = (range: Range, by: ModelGrouping) =>
  new URLSearchParams({ ...toTimes(range), step: range.step, by }).toString();
