// What has been used this month, the share of the budget, and the limits.

import { Progress, Stack, Text } from '@mantine/core';
import type { Limits } from '#accounts/schema.ts';
import { toCounted, toMoney } from '#lib/text/format.ts';
import { type Allowance, toLimitTexts } from './limits.ts';

export function SpendView({ of, name }: { of: Allowance; name: string }) {
  const { spend, limits } = of;
  const budget = limits.monthly_budget ?? null;
  const percent = budget === null ? null : Math.min(100, (spend.cost / budget) * 100);
  return (
    <Stack gap={4} className="spend">
      <Text size="sm">
        {toMoney(spend.cost)}
        {budget !== null && ` of ${toMoney(budget)}`}
      </Text>
      {percent !== null && (
        <Progress
          value={percent}
          size="sm"
          color={percent >= 90 ? 'red' : undefined}
          aria-label={`Budget used by ${name}`}
        />
      )}
      <Text size="xs" c="dimmed">
        {toCounted(spend.tokens, 'token')} · {toCounted(spend.requests, 'request')} accepted
      </Text>
    </Stack>
  );
}

export function LimitsView({ limits }: { limits: Limits }) {
  const texts = toLimitTexts(limits);
  if (texts.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        None
      </Text>
    );
  }
  return (
    <div>
      {texts.map((text) => (
        <Text key={text} size="sm">
          {text}
        </Text>
      ))}
    </div>
  );
}
