// Keeps a page that broke, or whose code could not be fetched, from taking the frame with it.

import { Button, Stack, Text, Title } from '@mantine/core';
import { Component, type ReactNode } from 'react';

export class ErrorBoundary extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <Stack align="flex-start" role="alert">
        <Title order={1} size="h2">
          This page could not be shown
        </Title>
        <Text>
          It may have been updated since you opened it, or the server may be away for a moment.
        </Text>
        <Button onClick={() => location.reload()}>Load it again</Button>
      </Stack>
    );
  }
}
