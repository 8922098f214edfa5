// The columns of numbers, the same for groups, for steps, and for the file that is downloaded.

import type { Column } from '../components/data-table.tsx';
import { toCount, toDuration, toHours, toMoney } from '../format/numbers.ts';
import type { Amounts } from './usage-totals.ts';

type WithAmounts = { amounts: Amounts };

const count = (name: string, member: Exclude<keyof Amounts, 'first_token_ms'>) => ({
  name,
  isNumber: true,
  cell: ({ amounts }: WithAmounts) => toCount(amounts[member]),
});
const cost: Column<WithAmounts> = {
  name: 'Cost',
  isNumber: true,
  cell: ({ amounts }) => toMoney(amounts.cost),
};

export const modelColumns: Column<WithAmounts>[] = [
  count('Requests', 'requests'),
  count('Errors', 'errors'),
  count('Stopped', 'aborted'),
  count('Tokens in', 'prompt_tokens'),
  count('of them cached', 'cached_tokens'),
  count('Tokens out', 'completion_tokens'),
  {
    name: 'First token',
    isNumber: true,
    cell: ({ amounts: { first_token_ms } }) =>
      first_token_ms === null ? '–' : toDuration(first_token_ms),
  },
  cost,
];

export const machineColumns: Column<WithAmounts>[] = [
  { name: 'Hours', isNumber: true, cell: ({ amounts }) => toHours(amounts.hours) },
  cost,
];
