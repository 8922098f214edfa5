// The whole span in a line of numbers.

import { toCount, toHours, toMoney } from '../format/numbers.ts';
import type { Grouping } from './usage-data.ts';
import type { Amounts } from './usage-totals.ts';

export function Totals({ total, by }: { total: Amounts; by: Grouping }) {
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
          ['Tokens in', toCount(total.prompt_tokens)],
          ['Tokens out', toCount(total.completion_tokens)],
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
