// The columns of numbers, shared by the tables of totals and of intervals.

import { toCount, toDuration, toHours, toMoney } from '#lib/text/format.ts';
import type { Column } from '../components/data-table.tsx';
import type { UsageTotals } from './usage-totals.ts';

type WithTotals = { totals: UsageTotals };

const count = (name: string, member: Exclude<keyof UsageTotals, 'first_token_ms'>) => ({
  name,
  isNumber: true,
  value: ({ totals }: WithTotals) => totals[member],
  cell: ({ totals }: WithTotals) => toCount(totals[member]),
});
const cost: Column<WithTotals> = {
  name: 'Cost',
  isNumber: true,
  value: ({ totals }) => totals.cost,
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
    value: ({ totals }) => totals.first_token_ms,
    cell: ({ totals: { first_token_ms } }) =>
      first_token_ms === null ? '–' : toDuration(first_token_ms),
  },
  cost,
];

export const machineColumns: Column<WithTotals>[] = [
  {
    name: 'Hours',
    isNumber: true,
    value: ({ totals }) => totals.hours,
    cell: ({ totals }) => toHours(totals.hours),
  },
  cost,
];
