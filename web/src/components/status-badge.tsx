// A state in a word with a coloured mark before it.

import { Badge } from '@mantine/core';

export type Tone = 'good' | 'waiting' | 'bad' | 'quiet';

export const StatusBadge = ({ tone, children }: { tone: Tone; children: string }) => (
  <Badge variant="default" tt="none" leftSection={<span className="status-dot" data-tone={tone} />}>
    {children}
  </Badge>
);
