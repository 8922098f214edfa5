// Fields that few people need, below a line that names them.

import { Stack } from '@mantine/core';
import type { ReactNode } from 'react';

interface AdvancedProps {
  /** What the fields are about, e.g. `headers, timeouts`. */
  about: string;
  /** True if the fields are shown at first. */
  initiallyOpen?: boolean;
  children: ReactNode;
}

export const Advanced = ({ about, initiallyOpen = false, children }: AdvancedProps) => (
  // The browser can't focus an invalid field that is hidden.
  <details
    open={initiallyOpen}
    onInvalidCapture={({ currentTarget }) => {
      currentTarget.open = true;
    }}
  >
    <summary>Advanced: {about}</summary>
    <Stack gap="sm" mt="sm">
      {children}
    </Stack>
  </details>
);
