// The totals of the time range in one line: one cost for models and machines, and what it consists of.

import { toCount, toHours, toMoney } from '#lib/text/format.ts';
import { Facts } from '../components/facts.tsx';
import type { TimeRange } from './time-range.ts';
import { useTotals } from './usage-data.ts';

export function UsageSummary({ range }: { range: TimeRange }) {
  const { models, machines } = useTotals(range);
  if (models === undefined || machines === undefined) return null;
  return (
    <Facts
      facts={[
        ['Total cost', toMoney(models.cost + machines.cost)],
        ['Models', toMoney(models.cost)],
        ['Machines', toMoney(machines.cost)],
        ['Requests', toCount(models.requests)],
        ['Failed', toCount(models.errors - models.refused)],
        ['Refused (4xx)', toCount(models.refused)],
        ['Input tokens', toCount(models.prompt_tokens)],
        ['Output tokens', toCount(models.completion_tokens)],
        ['Machine hours', toHours(machines.hours)],
      ]}
    />
  );
}
