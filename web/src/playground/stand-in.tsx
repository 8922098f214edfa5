// Says that only a stand-in answers for models, so that its answers are not taken for theirs.

import { Anchor, Group, Text } from '@mantine/core';
import { Link } from 'wouter';
import { StatusBadge } from '../components/status-badge.tsx';
import { standInLabel, toPullPath } from '../models/backends.ts';

export function StandInNotice({ models }: { models: readonly string[] }) {
  const [model] = models;
  if (model === undefined) return null;
  const isOne = models.length === 1;
  return (
    <Group gap="xs">
      <StatusBadge tone="warning">{standInLabel}</StatusBadge>
      <Text size="xs" c="dimmed">
        {models.join(' and ')} {isOne ? 'has' : 'have'} no backend yet, so the stand-in answers for{' '}
        {isOne ? 'it' : 'them'}, free of charge.
      </Text>
      <Anchor
        component={Link}
        href={isOne ? toPullPath(model) : '/models'}
        size="xs"
        underline="always"
      >
        {isOne ? 'Serve the real model' : 'Serve the real models'}
      </Anchor>
    </Group>
  );
}
