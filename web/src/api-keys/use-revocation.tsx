// Revokes an API key after a confirmation.

import { Checkbox, Code } from '@mantine/core';
import { useState } from 'react';
import type { ApiKey } from '#accounts/schema.ts';
import { useDelete } from '../components/use-delete.tsx';
import { apiKeysKey } from '../queries.ts';

export function useRevocation(onDeleted?: () => void) {
  const [letsFinish, setLetsFinish] = useState(false);
  return useDelete<ApiKey>({
    action: 'Revoke',
    nameOf: ({ label }) => label,
    warning: ({ hint }) => (
      <>
        Requests with <Code className="breakable">{hint}</Code> are refused immediately, and its
        batches and background responses end. This can’t be undone.
        <Checkbox
          mt="md"
          label="Let requests in progress finish"
          description="Otherwise they end now."
          checked={letsFinish}
          onChange={({ currentTarget }) => setLetsFinish(currentTarget.checked)}
        />
      </>
    ),
    pathOf: ({ id }) => `/dashboard/api/api-keys/${id}?running=${letsFinish ? 'finish' : 'end'}`,
    queryKeys: [apiKeysKey],
    onClosed: () => setLetsFinish(false),
    doneMessage: ({ label }) => `API key “${label}” revoked.`,
    ...(onDeleted === undefined ? {} : { onDeleted }),
  });
}
