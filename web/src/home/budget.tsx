// What the month will have cost at the rate of the last 7 days, and how much of the account's budget is used.
// The budget covers models only.

import { Progress, Text } from '@mantine/core';
import { toMoney, toPercent } from '#lib/text/format.ts';
import { useAccountLimits } from '../api-keys/limits.ts';
import { toLastWeek } from '../usage/time-range.ts';
import { useTotals } from '../usage/usage-data.ts';
import { toProjection } from './projection.ts';

interface BudgetProps {
  /** US dollars this month. */
  models: number;
  machines: number;
}

export function Budget({ models, machines }: BudgetProps) {
  const account = useAccountLimits();
  const week = toLastWeek(Date.now());
  const recent = useTotals(week);
  const budget = account.data?.limits.monthly_budget ?? null;
  const now = Date.now();
  const project = (soFar: number, cost: number) =>
    toProjection(soFar, { cost, since: week.from }, now);
  const recentModels = recent.models?.cost ?? 0;
  const total = project(models + machines, recentModels + (recent.machines?.cost ?? 0));
  const isOver = budget !== null && project(models, recentModels) > budget;
  const percent = budget === null ? 0 : Math.min(100, (models / budget) * 100);
  return (
    <div className="budget">
      {budget !== null && (
        <Progress
          value={percent}
          size="sm"
          color={percent >= 90 ? 'red' : undefined}
          aria-label="Budget used"
        />
      )}
      <Text size="xs" c="dimmed">
        {budget === null
          ? 'No budget'
          : `${toPercent(models, budget)} of the ${toMoney(budget)} budget for models`}
      </Text>
      {total > 0 && (
        <Text size="xs" c="dimmed" data-tone={isOver ? 'warning' : undefined}>
          {toMoney(total)} by the end of the month at the rate of the last 7 days
          {isOver && ', which exceeds the budget'}
        </Text>
      )}
    </div>
  );
}
