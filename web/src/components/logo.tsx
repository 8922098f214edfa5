// The product's name and icon, which link to the home page.

import { Group, Text } from '@mantine/core';
import { Link } from 'wouter';

export const Logo = () => (
  <Link href="/" className="logo">
    <Group gap={10} wrap="nowrap">
      <img src="/favicon.svg" width={26} height={26} alt="" />
      <Text component="span" fw={600} size="lg">
        Millrace
      </Text>
    </Group>
  </Link>
);
