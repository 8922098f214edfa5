// The firewall: rules for all machines of the account, and rulesets for some of them.

import { Button, Group, Paper, Skeleton, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { FirewallRule } from '#cloud/schema.ts';
import { get, type List, patch } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Form } from '../components/form.tsx';
import { LeaveGuard } from '../components/leave-guard.tsx';
import { NetworkNotice } from '../components/network-notice.tsx';
import { Page } from '../components/page.tsx';
import { Section } from '../components/section.tsx';
import { useMe } from '../current-user.ts';
import { parseRule, type RuleFields, toFields, toRuleText } from './rules.ts';
import { NoRules, RulesEditor } from './rules-editor.tsx';
import { Rulesets } from './rulesets.tsx';

export default function Firewall() {
  const { canUse } = useMe();
  const rules = useQuery({
    queryKey: ['firewall-rules'],
    queryFn: () => get<List<FirewallRule>>('/api/v1/firewall-rules'),
    // Refetching would overwrite what the user is editing. Opening the page again fetches the rules anew.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  return (
    <Page
      title="Firewall"
      description="Controls traffic from outside to your machines. What no rule allows is blocked. Traffic between your machines and from them to the internet needs no rule."
    >
      <NetworkNotice />
      <Section title="Rules for all machines">
        {rules.isPending && <Skeleton h={160} aria-busy="true" />}
        {rules.error && <ErrorNotice error={rules.error} onRetry={() => rules.refetch()} />}
        {rules.data && (
          <Paper withBorder p="md">
            {canUse ? (
              <GlobalRules saved={rules.data.data} />
            ) : (
              <RuleList rules={rules.data.data} />
            )}
          </Paper>
        )}
      </Section>
      <Rulesets />
    </Page>
  );
}

function GlobalRules({ saved }: { saved: FirewallRule[] }) {
  const [rules, setRules] = useState(() => saved.map(toFields));
  const [edited, setEdited] = useState(false);
  const save = useMutation({
    mutationFn: async () => {
      const body = { rules: rules.map(parseRule) };
      await patch('/api/v1/firewall-rulesets/global', body);
    },
    onSuccess: () => {
      setEdited(false);
      notifications.show({ message: 'Rules saved. They apply to all machines.' });
    },
  });
  const change = (changed: RuleFields[]) => {
    setRules(changed);
    setEdited(true);
  };
  return (
    <Form
      onSubmit={() => save.mutate()}
      error={save.error}
      actions={
        <Group justify="flex-end">
          {edited && (
            <Text size="sm" c="dimmed">
              Unsaved changes
            </Text>
          )}
          <Button type="submit" loading={save.isPending}>
            Save rules
          </Button>
        </Group>
      }
    >
      <RulesEditor rules={rules} onChange={change} />
      <LeaveGuard unsaved={edited} page="/firewall" />
    </Form>
  );
}

const RuleList = ({ rules }: { rules: FirewallRule[] }) => (
  <Stack gap={4}>
    {rules.length === 0 && <NoRules />}
    {rules.map((rule) => (
      <Text key={toRuleText(rule)} size="sm">
        {toRuleText(rule)}
        {rule.description && ` (${rule.description})`}
      </Text>
    ))}
  </Stack>
);
