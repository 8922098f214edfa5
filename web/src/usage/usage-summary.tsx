// The totals of the time range in one line.

import { toCount, toHours, toMoney } from '../format/numbers.ts';
import type { Grouping } from './usage-data.ts';
import type { UsageTotals } from './usage-totals.ts';

export function UsageSummary({ total, by }: { total: UsageTotals; by: Grouping }) {
  const facts =
    by === 'machine'
      ? [
          ['Cost', toMoney(total.cost)],
          ['Machine hours', toHours(total.hours)],
        ]
      : [
          ['Cost', toMoney(total.cost)],
          ['Requests', toCount(total.requests)],
          ['Errors', toCount(total.errors)],
          ['Input tokens', toCount(total.prompt_tokens)],
          ['Output tokens', toCount(total.completion_tokens)],
        ];
  return (
    <dl className="totals">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
