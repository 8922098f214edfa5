// What a deployment served and cost lately.

import { Paper, SimpleGrid } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { CostView } from '#deployments/ground/schema.ts';
import { toCount, toDuration, toMoney, toRate, toTokenPrice } from '#lib/text/format.ts';
import { get } from '../api.ts';
import { Fact } from '../components/facts.tsx';
import { Section } from '../components/section.tsx';
import { toApiPath, toDeploymentKey } from './deployments.ts';

const refetchInterval = 15_000;

export function DeploymentCost({ name }: { name: string }) {
  const { data } = useQuery({
    queryKey: [...toDeploymentKey(name), 'cost'],
    queryFn: () => get<{ data: CostView }>(`${toApiPath(name)}/cost`),
    refetchInterval,
  });
  if (!data) return null;
  const cost = data.data;
  return (
    <Section
      title="Use and cost"
      description="The last 30 days, or since the deployment was created."
    >
      <Paper withBorder p="md">
        <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="md" verticalSpacing="md">
          <Fact name="Tokens per second">
            {toRate(cost.tokens_per_second)} <span className="muted">last five minutes</span>
          </Fact>
          <Fact name="Time to first token">
            {cost.first_token_ms === null ? '–' : toDuration(cost.first_token_ms)}{' '}
            <span className="muted">streams of the last five minutes</span>
          </Fact>
          <Fact name="Tokens served">{toCount(cost.tokens)}</Fact>
          <Fact name="Engine time">{toDuration(cost.engine_seconds * 1_000)}</Fact>
          <Fact name="Time without a replica">
            {toDuration(cost.idle_hours * 3_600_000)}{' '}
            {cost.saved_dollars > 0 && (
              <span className="muted">saved {toMoney(cost.saved_dollars)}</span>
            )}
          </Fact>
          {cost.machine_dollars > 0 && <Fact name="Machines">{toMoney(cost.machine_dollars)}</Fact>}
          {cost.dollars_per_million_tokens !== null && (
            <Fact name="Per million tokens">{toTokenPrice(cost.dollars_per_million_tokens)}</Fact>
          )}
        </SimpleGrid>
      </Paper>
    </Section>
  );
}
