// The layout of the pages for users who are not signed in.

import { Center, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { Logo } from './logo.tsx';

interface AuthLayoutProps {
  title: string;
  description?: string;
  children: ReactNode;
}

export function AuthLayout({ title, description, children }: AuthLayoutProps) {
  useDocumentTitle(`${title} · Millrace`);
  return (
    <Center component="main" mih="100dvh" p="md">
      <Stack w="100%" maw={420} gap="lg">
        <Group justify="center">
          <Logo />
        </Group>
        <Paper withBorder p={{ base: 'lg', sm: 'xl' }}>
          <Stack gap="md">
            <Stack gap={6}>
              <Title order={1} size="h3">
                {title}
              </Title>
              {description && <Text c="dimmed">{description}</Text>}
            </Stack>
            {children}
          </Stack>
        </Paper>
      </Stack>
    </Center>
  );
}
