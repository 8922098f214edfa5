// How a machine is, in a word, and why in a sentence when it is not well.

import { Stack, Text } from '@mantine/core';
import type { Instance, InstanceDetail } from '#cloud/schema.ts';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';

interface StatusProps {
  instance: Instance;
  detail: InstanceDetail | undefined;
}

const tones: Record<Instance['status'], Tone> = {
  active: 'good',
  booting: 'waiting',
  unhealthy: 'bad',
  terminating: 'quiet',
  terminated: 'quiet',
};

export function Status({ instance, detail }: StatusProps) {
  const { status, actions } = instance;
  const isActing = actions.restart.reason_code === 'vm-action-in-progress';
  const reason = detail?.status_reason ?? detail?.last_error;
  return (
    <Stack gap={4} align="flex-start" className="status">
      <StatusBadge tone={isActing ? 'waiting' : tones[status]}>
        {isActing ? 'restarting' : status}
      </StatusBadge>
      {reason && (
        <Text size="xs" c="dimmed" maw={240} className="breakable">
          {reason}
        </Text>
      )}
    </Stack>
  );
}
