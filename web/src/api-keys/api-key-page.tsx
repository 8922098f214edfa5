// One API key: what it may do, what it has used of its limits, its usage over time, and its last errors.

import { Button, Code, Group, Paper, SimpleGrid, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { ApiKey } from '#accounts/schema.ts';
import { ApiError, get } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Fact } from '../components/facts.tsx';
import { Page } from '../components/page.tsx';
import { Section } from '../components/section.tsx';
import { useMe } from '../current-user.ts';
import { apiKeysKey } from '../queries.ts';
import { Traffic } from '../usage/traffic.tsx';
import { Expiry, OptionalTime, Scopes, toCreator } from './key-cells.tsx';
import { EditKeyDialog } from './limits-dialogs.tsx';
import { LimitsView, SpendView } from './limits-view.tsx';
import { useRevocation } from './use-revocation.tsx';

export default function ApiKeyPage({ id }: { id: string }) {
  const key = useQuery({
    queryKey: [...apiKeysKey, id],
    queryFn: () => get<ApiKey>(`/dashboard/api/api-keys/${id}`),
    refetchInterval: 15_000,
  });
  const isGone = key.error instanceof ApiError && key.error.status === 404;
  return (
    <Page
      title={key.data?.label ?? 'API key'}
      description={key.data && <Code className="breakable">{key.data.hint}</Code>}
      actions={key.data && <Actions apiKey={key.data} />}
    >
      {key.isPending && <Skeleton h={160} aria-busy="true" />}
      <ErrorNotice error={key.error} {...(isGone ? {} : { onRetry: () => key.refetch() })} />
      {key.data && <About apiKey={key.data} />}
      {!isGone && <Traffic subject={{ key: id }} by="model" />}
    </Page>
  );
}

function Actions({ apiKey }: { apiKey: ApiKey }) {
  const { id, canUse, canManage } = useMe();
  const [, navigate] = useLocation();
  const [isEditing, setIsEditing] = useState(false);
  const revocation = useRevocation(() => navigate('/api-keys'));
  // Members may change only their own keys.
  if (!canUse || !(canManage || apiKey.created_by?.id === id)) return null;
  return (
    <Group gap="xs">
      <Button variant="default" onClick={() => setIsEditing(true)}>
        Edit
      </Button>
      <Button variant="default" onClick={() => revocation.ask(apiKey)}>
        Revoke
      </Button>
      {isEditing && <EditKeyDialog apiKey={apiKey} onClose={() => setIsEditing(false)} />}
      {revocation.dialog}
    </Group>
  );
}

const About = ({ apiKey }: { apiKey: ApiKey }) => (
  <Section title="About this key">
    <Paper withBorder p="lg">
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }}>
        <Fact name="Cost this month">
          <SpendView of={apiKey} name={apiKey.label} />
        </Fact>
        <Fact name="Limits">
          <LimitsView limits={apiKey.limits} />
        </Fact>
        <Fact name="Access">
          <Scopes scopes={apiKey.scopes} />
        </Fact>
        <Fact name="Last used">
          <OptionalTime at={apiKey.last_used_at} />
        </Fact>
        <Fact name="Expires">
          <Expiry at={apiKey.expires_at} />
        </Fact>
        <Fact name="Created">
          <OptionalTime at={apiKey.created_at} /> by {toCreator(apiKey)}
        </Fact>
      </SimpleGrid>
    </Paper>
  </Section>
);
