// The page for addresses that have no page.

import { Anchor, Text } from '@mantine/core';
import { Link } from 'wouter';
import { Page } from './components/page.tsx';

export const NotFound = () => (
  <Page title="Page not found">
    <Text>
      There is no page at this address.{' '}
      <Anchor component={Link} href="/">
        Go to the home page
      </Anchor>
    </Text>
  </Page>
);
