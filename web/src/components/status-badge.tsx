// A status as a word with a colored dot before it. The five tones are the only status colors of the dashboard.

import { Badge } from '@mantine/core';

/** good: works. busy: changes by itself. warning: works, but needs attention. bad: fails. off: does nothing. */
export type Tone = 'good' | 'busy' | 'warning' | 'bad' | 'off';

export const StatusBadge = ({ tone, children }: { tone: Tone; children: string }) => (
  <Badge
    variant="default"
    tt="none"
    className="status-badge"
    data-tone={tone}
    leftSection={<span className="status-dot" data-tone={tone} />}
  >
    {children}
  </Badge>
);
