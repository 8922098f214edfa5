// The status of a machine, with the reason if something is wrong.

import { Stack, Text } from '@mantine/core';
import type { Instance, InstanceDetail } from '#cloud/schema.ts';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';

interface MachineStatusProps {
  instance: Instance;
  detail: InstanceDetail | undefined;
}

const tones: Record<Instance['status'], Tone> = {
  active: 'good',
  booting: 'busy',
  unhealthy: 'bad',
  terminating: 'busy',
  terminated: 'off',
};

export function MachineStatus({ instance, detail }: MachineStatusProps) {
  const { status, actions } = instance;
  const isActing = actions.restart.reason_code === 'vm-action-in-progress';
  const reason = detail?.status_reason ?? detail?.last_error;
  return (
    <Stack gap={4} align="flex-start" className="status">
      <StatusBadge tone={isActing ? 'busy' : tones[status]}>
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
