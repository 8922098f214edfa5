// Values under their names: short ones in a row, or one that takes the space it needs.

import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import './facts.css';

/** Numbers or short texts. */
export const Facts = ({ facts }: { facts: [name: string, value: ReactNode][] }) => (
  <dl className="facts">
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

export const Fact = ({ name, children }: { name: string; children: ReactNode }) => (
  <div>
    <Text size="xs" c="dimmed" mb={4}>
      {name}
    </Text>
    <Text size="sm" component="div" className="breakable">
      {children}
    </Text>
  </div>
);
