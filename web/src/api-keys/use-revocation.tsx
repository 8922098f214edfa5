// Revokes an API key after a confirmation.

import { Code } from '@mantine/core';
import type { ApiKey } from '#accounts/schema.ts';
import { useDelete } from '../components/use-delete.tsx';
import { apiKeysKey } from '../queries.ts';

export const useRevocation = (onDeleted?: () => void) =>
  useDelete<ApiKey>({
    action: 'Revoke',
    nameOf: ({ label }) => label,
    warning: ({ hint }) => (
      <>
        New requests with <Code className="breakable">{hint}</Code> are refused immediately.
        Requests in progress finish. Batches and background responses end. This can’t be undone.
      </>
    ),
    pathOf: ({ id }) => `/dashboard/api/api-keys/${id}`,
    queryKeys: [apiKeysKey],
    doneMessage: ({ label }) => `API key “${label}” revoked.`,
    ...(onDeleted === undefined ? {} : { onDeleted }),
  });
