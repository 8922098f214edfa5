// The firewall: what may come in to all machines of the account, and rulesets for some of them.

import { Button, Group, Paper, Skeleton, Stack, Text, Title } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { FirewallRule } from '#cloud/schema.ts';
import { get, type List, patch } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Page } from '../components/page.tsx';
import { useMe } from '../current-user.ts';
import { parseRule, toFields, toSentence } from './rules.ts';
import { RulesEditor } from './rules-editor.tsx';
import { Rulesets } from './rulesets.tsx';

export default function Firewall() {
  const { canUse } = useMe();
  const rules = useQuery({
    queryKey: ['firewall-rules'],
    queryFn: () => get<List<FirewallRule>>('/api/v1/firewall-rules'),
    // What is being edited must not change under the hands; coming back to the page reads it anew.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  return (
    <Page
      title="Firewall"
      description="What may come in to your machines. Everything that no rule allows is turned away; what goes out to the internet is free."
    >
      <Stack gap="sm">
        <Title order={2} size="h4">
          For all machines
        </Title>
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
      </Stack>
      <Rulesets />
    </Page>
  );
}

function GlobalRules({ saved }: { saved: FirewallRule[] }) {
  const [rules, setRules] = useState(() => saved.map(toFields));
  const save = useMutation({
    mutationFn: async () => {
      const body = { rules: rules.map(parseRule) };
      await patch('/api/v1/firewall-rulesets/global', body);
    },
    onSuccess: () =>
      notifications.show({ message: 'The rules are saved and apply to all machines.' }),
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <RulesEditor rules={rules} onChange={setRules} />
        <ErrorNotice error={save.error} />
        <Group justify="flex-end">
          <Button type="submit" loading={save.isPending}>
            Save the rules
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

const RuleList = ({ rules }: { rules: FirewallRule[] }) => (
  <Stack gap={4}>
    {rules.length === 0 && <Text size="sm">No rules: nothing may come in.</Text>}
    {rules.map((rule) => (
      <Text key={toSentence(rule)} size="sm">
        {toSentence(rule)}
        {rule.description && ` (${rule.description})`}
      </Text>
    ))}
  </Stack>
);
