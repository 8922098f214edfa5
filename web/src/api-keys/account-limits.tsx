// What the whole account has spent on models this month, and its limits. Machines are not part of a budget.

import { Button, Paper, SimpleGrid, Skeleton, Text } from '@mantine/core';
import { Link } from 'wouter';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Fact } from '../components/facts.tsx';
import { Section } from '../components/section.tsx';
import { useMe } from '../current-user.ts';
import { useAccountLimits } from './limits.ts';
import { LimitsView, SpendView } from './limits-view.tsx';

export function AccountLimits() {
  const { canManage } = useMe();
  const account = useAccountLimits();
  const edit = canManage ? (
    <Button variant="default" size="xs" component={Link} href="/api-keys/limits">
      Edit account limits
    </Button>
  ) : (
    <Text size="xs" c="dimmed">
      Only owners can change these limits.
    </Text>
  );
  return (
    <Section title="Whole account" actions={edit}>
      <Paper withBorder p="md">
        {account.isPending && <Skeleton h={66} aria-busy="true" />}
        <ErrorNotice error={account.error} onRetry={() => account.refetch()} />
        {account.data && (
          <SimpleGrid cols={{ base: 1, xs: 2 }}>
            <Fact name={`Cost of models in ${toMonth(account.data.spend.month)}`}>
              <SpendView of={account.data} name="the account" />
            </Fact>
            <Fact name="Limits">
              <LimitsView limits={account.data.limits} />
            </Fact>
          </SimpleGrid>
        )}
      </Paper>
    </Section>
  );
}

/** `2026-11` as "November 2026". Months are in UTC everywhere. */
const toMonth = (month: string) =>
  new Date(`${month}-01T00:00:00Z`).toLocaleString('en', {
    month: 'long',
    year: 'numeric',
    timeZone: 'UTC',
  });
