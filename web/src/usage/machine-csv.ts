// Hours and costs of machines as CSV. The server provides this for models; machines are added up here.

import { toCsv } from '../format/csv.ts';
import type { UsagePoint } from './usage-totals.ts';

export const toMachineCsv = (points: UsagePoint[]): string =>
  toCsv([
    ['start', 'machine_id', 'machine', 'hours', 'cost_usd'],
    ...points.map(({ start, group, label, totals }) => [
      new Date(start).toISOString(),
      group,
      label,
      Number(totals.hours.toFixed(6)),
      Number(totals.cost.toFixed(9)),
    ]),
  ]);
