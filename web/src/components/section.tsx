// A part of a page under its own heading.

import { Group, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

interface SectionProps {
  title: string;
  description?: string;
  /** Buttons beside the heading. */
  actions?: ReactNode;
  children: ReactNode;
}

export const Section = ({ title, description, actions, children }: SectionProps) => (
  <Stack component="section" gap="sm" aria-label={title}>
    <Group justify="space-between">
      <div>
        <Title order={2} size="h4">
          {title}
        </Title>
        {description && (
          <Text size="sm" c="dimmed">
            {description}
          </Text>
        )}
      </div>
      {actions}
    </Group>
    {children}
  </Stack>
);
