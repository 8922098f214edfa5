// The tags of a machine.

import { Badge, Group } from '@mantine/core';
import type { Instance } from '#cloud/schema.ts';
import { fromTag } from './tags.ts';

export const TagBadges = ({ tags }: { tags: NonNullable<Instance['tags']> }) => (
  <Group gap={4}>
    {tags.map((tag) => (
      <Badge key={tag.key} variant="default" size="sm" tt="none">
        {fromTag(tag)}
      </Badge>
    ))}
  </Group>
);
