// The page for addresses that have no page.

import { Button } from '@mantine/core';
import { Link } from 'wouter';
import { EmptyState } from './components/empty-state.tsx';
import { Page } from './components/page.tsx';

export const NotFound = () => (
  <Page title="Page not found">
    <EmptyState
      title="Nothing at this address"
      art="filter"
      action={
        <Button component={Link} href="/">
          Go to the home page
        </Button>
      }
    >
      The link may be old, or what it led to was deleted.
    </EmptyState>
  </Page>
);
