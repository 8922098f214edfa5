// One host: its status, its nodes, and the actions on it.

import { Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { HostView } from '#cloud/hosts/schema.ts';
import { toCounted } from '#lib/text/format.ts';
import { patch } from '../api.ts';
import { RowButton } from '../components/data-table.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { useMe } from '../current-user.ts';
import { HostCheckDialog } from './host-check-dialog.tsx';
import { HostNodes } from './host-nodes.tsx';
import { hostsKey, toBlockedReason, toHostPath, toRemovalWarning } from './hosts.ts';

const tones: Record<HostView['status'], Tone> = {
  online: 'good',
  offline: 'bad',
  draining: 'off',
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
    engine ?? (driver === 'sandbox' ? 'sandboxes on this server' : 'version unknown'),
    url,
    target && `cluster target ${target}`,
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
              {status === 'offline' && draining && <StatusBadge tone="off">draining</StatusBadge>}
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
  const isDraining = host.draining;
  const drain = useMutation({
    mutationFn: () => patch(toHostPath(host), { draining: !isDraining }),
    onSuccess: () => client.invalidateQueries({ queryKey: hostsKey }),
  });
  const removal = useDelete<HostView>({
    action: 'Remove',
    nameOf: ({ name }) => name,
    warning: toRemovalWarning,
    pathOf: (removed) =>
      `${toHostPath(removed)}${removed.status === 'offline' ? '?forget=true' : ''}`,
    queryKeys: [hostsKey],
    doneMessage: ({ name }) => `Host “${name}” removed.`,
    blockedReason: toBlockedReason,
  });
  const isBlocked = toBlockedReason(host) !== null;
  return (
    <Stack gap={6} align="flex-end" ml="auto">
      <Group gap={6}>
        <RowButton action="Check" name={host.name} onClick={() => setChecking(true)} />
        <RowButton
          action={isDraining ? 'Resume' : 'Drain'}
          name={host.name}
          onClick={() => drain.mutate()}
          loading={drain.isPending}
          title={isDraining ? undefined : 'Stops new launches. Running machines stay.'}
        />
        {!isBlocked && removal.button(host)}
      </Group>
      {isBlocked && removal.button(host)}
      <ErrorNotice error={drain.error} />
      {isChecking && <HostCheckDialog host={host} onClose={() => setChecking(false)} />}
      {removal.dialog}
    </Stack>
  );
}
