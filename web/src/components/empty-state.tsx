// What a list shows while it is empty: a drawing, what belongs here, how to begin, and the same as a command.

import { Paper, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { nameProgram } from '../browser/program-name.ts';
import { CodeBlock } from './code-samples.tsx';
import { type Drawing, EmptyArt } from './empty-art.tsx';
import './data-table.css';

interface EmptyStateProps {
  title: string;
  children: ReactNode;
  action?: ReactNode;
  /** Default: a list. */
  art?: Drawing;
  /** A command that does the same on the command line. */
  command?: string;
}

export const EmptyState = ({ title, children, action, art = 'list', command }: EmptyStateProps) => (
  <Paper withBorder className="empty-state">
    <EmptyArt of={art} />
    <Title order={2} size="h3">
      {title}
    </Title>
    <Text c="dimmed" maw={520} className="balanced">
      {children}
    </Text>
    {action}
    {command && <CodeBlock code={nameProgram(command)} copyLabel="Copy command" />}
  </Paper>
);
