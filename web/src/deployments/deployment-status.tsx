// The status of a deployment, with what it does or why it failed.

import { Stack, Text } from '@mantine/core';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';

const tones: Record<DeploymentView['status'], Tone> = {
  ready: 'good',
  starting: 'busy',
  asleep: 'off',
  idle: 'off',
  stopping: 'busy',
  stopped: 'off',
  failed: 'bad',
};

export function DeploymentStatus({ deployment }: { deployment: DeploymentView }) {
  const { status, reason } = deployment;
  // Replicas of an older revision serve while the current one fails.
  const tone = status === 'ready' && reason !== null ? 'warning' : tones[status];
  const hint = toHint(deployment);
  return (
    <Stack gap={4} align="flex-start" className="status">
      <StatusBadge tone={tone}>{status}</StatusBadge>
      {hint && (
        <Text size="xs" c="dimmed">
          {hint}
        </Text>
      )}
      {reason && (
        <Text size="xs" c={status === 'failed' ? 'var(--mantine-color-error)' : 'dimmed'} maw={480}>
          <span className="breakable">{reason}</span>
        </Text>
      )}
    </Stack>
  );
}

function toHint({ status, replicas }: DeploymentView): string | null {
  if (status === 'asleep') return 'wakes with the next request';
  if (status === 'idle') return 'starts with the next request';
  if (status === 'stopping') return 'running requests finish';
  if (status !== 'starting') return null;
  return replicas.find(({ state }) => state === 'starting')?.progress ?? null;
}
