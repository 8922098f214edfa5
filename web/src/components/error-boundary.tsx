// Catches errors while a page renders or its code loads, so that the navigation around it keeps working.

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
          This page could not be displayed
        </Title>
        <Text>
          It may have been updated since you opened it, or the server may be temporarily
          unavailable.
        </Text>
        <Button onClick={() => location.reload()}>Reload the page</Button>
      </Stack>
    );
  }
}
