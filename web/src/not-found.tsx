// An address that leads nowhere.

import { Anchor, Text } from '@mantine/core';
import { Link } from 'wouter';
import { Page } from './components/page.tsx';

export const NotFound = () => (
  <Page title="Nothing here">
    <Text>
      This address leads to no page.{' '}
      <Anchor component={Link} href="/">
        Go home
      </Anchor>
    </Text>
  </Page>
);
