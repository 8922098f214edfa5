// Catches errors while a page or a part of it renders, or its code loads, so that what is around it keeps working.

import { Button, Stack, Text, Title } from '@mantine/core';
import { Component, type ReactNode } from 'react';

interface ErrorBoundaryProps {
  children: ReactNode;
  /** Shown instead of the part that failed. Without it, the whole page is said to have failed. */
  fallback?: ReactNode;
}

export class ErrorBoundary extends Component<ErrorBoundaryProps, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    if (this.props.fallback !== undefined) return this.props.fallback;
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
