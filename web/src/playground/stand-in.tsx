// Marks models that only a stand-in answers for, so that its answers are not taken for those of the model.

import { Anchor, Group, Text } from '@mantine/core';
import { Link } from 'wouter';
import { StatusBadge } from '../components/status-badge.tsx';
import { standInLabel, toPullPath } from '../models/backends.ts';

export const ModelOption = ({ id, isStandIn }: { id: string; isStandIn: boolean }) => (
  <Group gap="xs" justify="space-between" flex={1}>
    <span className="breakable">{id}</span>
    {isStandIn && <StatusBadge tone="warning">{standInLabel}</StatusBadge>}
  </Group>
);

export const StandInNotice = ({ model }: { model: string }) => (
  <Group gap="xs">
    <StatusBadge tone="warning">{standInLabel}</StatusBadge>
    <Text size="xs" c="dimmed">
      {model} has no backend yet, so a small model answers for it, free of charge.
    </Text>
    <Anchor component={Link} href={toPullPath(model)} size="xs" underline="always">
      Serve the real model
    </Anchor>
  </Group>
);
