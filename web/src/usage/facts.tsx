// Numbers or short texts, each under its name.

import type { ReactNode } from 'react';
import './usage.css';

export const Facts = ({ facts }: { facts: [name: string, value: ReactNode][] }) => (
  <dl className="totals">
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);
