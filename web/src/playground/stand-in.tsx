// Says that only a stand-in answers for a model, so that its answers are not taken for those of the model.

import { Anchor, Group, Text } from '@mantine/core';
import { Link } from 'wouter';
import { StatusBadge } from '../components/status-badge.tsx';
import { standInLabel, toPullPath } from '../models/backends.ts';

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
