// The columns of numbers, shared by the tables of totals and of intervals.

import { toCount, toDuration, toHours, toMoney } from '#lib/format.ts';
import type { Column } from '../components/data-table.tsx';
import type { UsageTotals } from './usage-totals.ts';

type WithTotals = { totals: UsageTotals };

const count = (name: string, member: Exclude<keyof UsageTotals, 'first_token_ms'>) => ({
  name,
  isNumber: true,
  cell: ({ totals }: WithTotals) => toCount(totals[member]),
});
const cost: Column<WithTotals> = {
  name: 'Cost',
  isNumber: true,
  cell: ({ totals }) => toMoney(totals.cost),
};

export const modelColumns: Column<WithTotals>[] = [
  count('Requests', 'requests'),
  count('Errors', 'errors'),
  count('Canceled', 'aborted'),
  count('Input tokens', 'prompt_tokens'),
  count('Cached input', 'cached_tokens'),
  count('Output tokens', 'completion_tokens'),
  {
    name: 'First token',
    isNumber: true,
    cell: ({ totals: { first_token_ms } }) =>
      first_token_ms === null ? '–' : toDuration(first_token_ms),
  },
  cost,
];

export const machineColumns: Column<WithTotals>[] = [
  { name: 'Hours', isNumber: true, cell: ({ totals }) => toHours(totals.hours) },
  cost,
];
