// The frame of a page: heading, description and tab title, and a skeleton while its code loads.

import { Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { Breadcrumbs, type Crumb } from './breadcrumbs.tsx';

interface PageProps {
  title: string;
  /** The pages above this one, for the breadcrumbs, e.g. the list that a detail page belongs to. */
  parents?: Crumb[];
  /** Beside the heading, e.g. the status of a machine. */
  status?: ReactNode;
  description?: ReactNode;
  /** Buttons beside the heading. */
  actions?: ReactNode;
  children: ReactNode;
}

export function Page({ title, parents, status, description, actions, children }: PageProps) {
  useDocumentTitle(`${title} · Millrace`);
  return (
    <Stack gap="lg">
      <Breadcrumbs title={title} parents={parents} />
      <Group justify="space-between" align="flex-start" mih={36}>
        <Stack gap={4} maw={680}>
          <Group gap="sm">
            <Title order={1} size="h2" className="breakable">
              {title}
            </Title>
            {status}
          </Group>
          {description && (
            <Text c="dimmed" className="balanced">
              {description}
            </Text>
          )}
        </Stack>
        {actions}
      </Group>
      {children}
    </Stack>
  );
}

export const PageSkeleton = () => (
  <Stack gap="lg" aria-busy="true">
    <Stack gap={8}>
      <Skeleton h={32} w={180} />
      <Skeleton h={18} w="60%" />
    </Stack>
    <Skeleton h={220} />
  </Stack>
);
