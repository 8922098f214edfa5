// Machines' hours and costs as a file. The server has this file for models; machines are added up here.

import { toCsv } from '../format/csv.ts';
import type { Cell } from './usage-totals.ts';

export const toMachineCsv = (cells: Cell[]): string =>
  toCsv([
    ['start', 'machine_id', 'machine', 'hours', 'cost_usd'],
    ...cells.map(({ start, group, label, amounts }) => [
      new Date(start).toISOString(),
      group,
      label,
      Number(amounts.hours.toFixed(6)),
      Number(amounts.cost.toFixed(9)),
    ]),
  ]);
