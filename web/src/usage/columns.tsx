// The columns of numbers, the same for groups, for steps, and for the file that is downloaded.

import type { ReactNode } from 'react';
import { toCount, toDuration, toMoney } from '../parts/numbers.ts';
import type { Column } from '../parts/records.tsx';
import type { Amounts } from './amounts.ts';

const number = (text: ReactNode) => <span className="number">{text}</span>;

type WithAmounts = { amounts: Amounts };

export const modelColumns: Column<WithAmounts>[] = [
  { name: 'Requests', cell: ({ amounts }) => number(toCount(amounts.requests)) },
  { name: 'Errors', cell: ({ amounts }) => number(toCount(amounts.errors)) },
  { name: 'Stopped', cell: ({ amounts }) => number(toCount(amounts.aborted)) },
  { name: 'Tokens in', cell: ({ amounts }) => number(toCount(amounts.prompt_tokens)) },
  { name: 'of them cached', cell: ({ amounts }) => number(toCount(amounts.cached_tokens)) },
  { name: 'Tokens out', cell: ({ amounts }) => number(toCount(amounts.completion_tokens)) },
  {
    name: 'First token',
    cell: ({ amounts: { first_token_ms } }) =>
      number(first_token_ms === null ? '–' : toDuration(first_token_ms)),
  },
  { name: 'Cost', cell: ({ amounts }) => number(toMoney(amounts.cost)) },
];

export const machineColumns: Column<WithAmounts>[] = [
  { name: 'Hours', cell: ({ amounts }) => number(amounts.hours.toFixed(2)) },
  { name: 'Cost', cell: ({ amounts }) => number(toMoney(amounts.cost)) },
];
