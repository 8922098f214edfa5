// One host: how it is, its nodes, and what can be done to it.

import { Button, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { HostView } from '#cloud/hosts/schema.ts';
import { patch, remove } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { useMe } from '../current-user.ts';
import { toCounted } from '../format/numbers.ts';
import { HostCheckDialog } from './host-check-dialog.tsx';
import { HostNodes } from './host-nodes.tsx';
import { hostsKey, toHostPath, toReasonToStay, toRemovalWarning } from './hosts.ts';

const tones: Record<HostView['status'], Tone> = {
  online: 'good',
  offline: 'bad',
  draining: 'quiet',
};

interface HostCardProps {
  host: HostView;
  nameOf: (instanceId: string) => string | null;
}

export function HostCard({ host, nameOf }: HostCardProps) {
  const { name, status, draining, reason, seen_at, region, instances } = host;
  const { driver, engine, url, target } = host;
  const { canManage } = useMe();
  const facts = [
    region,
    engine ?? (driver === 'sandbox' ? 'sandboxes on this server' : 'version not known yet'),
    url,
    target && `on ${target}`,
    toCounted(instances, 'machine'),
  ];
  return (
    <Paper withBorder p="md" component="section" aria-label={`Host ${name}`}>
      <Stack gap="md">
        <Group justify="space-between" align="flex-start">
          <div>
            <Group gap="xs">
              <Title order={2} size="h4" className="breakable">
                {name}
              </Title>
              <StatusBadge tone={tones[status]}>{status}</StatusBadge>
              {status === 'offline' && draining && <StatusBadge tone="quiet">draining</StatusBadge>}
            </Group>
            <Text size="sm" c="dimmed" className="breakable">
              {facts.filter(Boolean).join(' · ')}
            </Text>
            {reason && (
              <Text size="sm" className="breakable">
                {reason}
              </Text>
            )}
            {status === 'offline' && seen_at && (
              <Text size="sm" c="dimmed">
                Last seen <RelativeTime at={seen_at} />.
              </Text>
            )}
          </div>
          {canManage && <HostActions host={host} />}
        </Group>
        <HostNodes host={host} nameOf={nameOf} />
      </Stack>
    </Paper>
  );
}

function HostActions({ host }: { host: HostView }) {
  const client = useQueryClient();
  const [isChecking, setChecking] = useState(false);
  const refresh = () => client.invalidateQueries({ queryKey: hostsKey });
  const isDraining = host.draining;
  const drain = useMutation({
    mutationFn: () => patch(toHostPath(host), { draining: !isDraining }),
    onSuccess: refresh,
  });
  const removal = useDelete<HostView>({
    action: 'Remove',
    nameOf: ({ name }) => name,
    warning: toRemovalWarning,
    async onRemove() {
      const forget = host.status === 'offline' ? '?forget=true' : '';
      await remove(`${toHostPath(host)}${forget}`);
      await refresh();
    },
    done: ({ name }) => `The host “${name}” is removed.`,
    reasonToStay: toReasonToStay,
  });
  const word = isDraining ? 'Resume' : 'Drain';
  return (
    <Stack gap={6} align="flex-end">
      <Group gap={6}>
        <Button
          variant="default"
          size="xs"
          onClick={() => setChecking(true)}
          aria-label={`Check ${host.name}`}
        >
          Check
        </Button>
        <Button
          variant="default"
          size="xs"
          onClick={() => drain.mutate()}
          loading={drain.isPending}
          aria-label={`${word} ${host.name}`}
          title={isDraining ? undefined : 'No new machines; those that run stay.'}
        >
          {word}
        </Button>
        {toReasonToStay(host) === null && removal.button(host)}
      </Group>
      {toReasonToStay(host) !== null && removal.button(host)}
      <ErrorNotice error={drain.error} />
      {isChecking && <HostCheckDialog host={host} onClose={() => setChecking(false)} />}
      {removal.dialog}
    </Stack>
  );
}
