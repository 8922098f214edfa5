// A status as a word with a colored dot before it.

import { Badge } from '@mantine/core';

export type Tone = 'good' | 'pending' | 'bad' | 'neutral';

export const StatusBadge = ({ tone, children }: { tone: Tone; children: string }) => (
  <Badge variant="default" tt="none" leftSection={<span className="status-dot" data-tone={tone} />}>
    {children}
  </Badge>
);
