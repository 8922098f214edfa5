// What the whole account has used this month and may use at most.

import { Button, Group, Paper, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import { ErrorNotice } from '../components/error-notice.tsx';
import { useMe } from '../current-user.ts';
import { useAccountLimits } from './limits.ts';
import { LimitsView, SpendView } from './limits-view.tsx';

export function AccountLimits() {
  const { canManage } = useMe();
  const account = useAccountLimits();
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={2} size="h4">
          The whole account
        </Title>
        {canManage ? (
          <Button variant="default" size="xs" component={Link} href="/api-keys/limits">
            Change the account’s limits
          </Button>
        ) : (
          <Text size="xs" c="dimmed">
            Only an owner changes these limits.
          </Text>
        )}
      </Group>
      <Paper withBorder p="md">
        {account.isPending && <Skeleton h={66} aria-busy="true" />}
        <ErrorNotice error={account.error} onRetry={() => account.refetch()} />
        {account.data && (
          <SimpleGrid cols={{ base: 1, xs: 2 }}>
            <div>
              <Text size="xs" c="dimmed" mb={4}>
                Spent in {toMonth(account.data.spend.month)}
              </Text>
              <SpendView of={account.data} name="the account" />
            </div>
            <div>
              <Text size="xs" c="dimmed" mb={4}>
                Limits
              </Text>
              <LimitsView limits={account.data.limits} />
            </div>
          </SimpleGrid>
        )}
      </Paper>
    </Stack>
  );
}

/** `2026-11` in words; months are UTC everywhere. */
export const toMonth = (month: string) =>
  new Date(`${month}-01T00:00:00Z`).toLocaleString('en', {
    month: 'long',
    year: 'numeric',
    timeZone: 'UTC',
  });
