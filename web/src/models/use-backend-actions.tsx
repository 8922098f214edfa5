// Drains, resumes and removes backends. Draining asks nothing, as it can be taken back.

import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { BackendView } from '#inference/backends/schema.ts';
import { patch, remove } from '../api.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import type { BackendAction } from './backend-row.tsx';
import { backendsKey, toBackendPath } from './backends.ts';

export interface BackendActions {
  choose: (backend: BackendView, task: BackendAction) => void;
  error: Error | null;
  dialog: ReactNode;
}

export function useBackendActions(): BackendActions {
  const client = useQueryClient();
  const [removing, setRemoving] = useState<BackendView | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: backendsKey });
  const drain = useMutation({
    mutationFn: ({ backend, draining }: { backend: BackendView; draining: boolean }) =>
      patch(toBackendPath(backend), { draining }),
    onSuccess: refresh,
  });

  async function removeBackend(backend: BackendView) {
    await remove(toBackendPath(backend));
    await refresh();
    notifications.show({ message: `“${backend.name}” goes once its requests have finished.` });
  }

  return {
    choose(backend, task) {
      if (task === 'remove') setRemoving(backend);
      else drain.mutate({ backend, draining: task === 'drain' });
    },
    error: drain.error,
    dialog: removing && (
      <ConfirmDialog
        title={`Remove “${removing.name}”?`}
        action="Remove"
        onConfirm={() => removeBackend(removing)}
        onClose={() => setRemoving(null)}
      >
        It gets no new requests for {removing.model}; those that run may finish. Its key is
        forgotten.
      </ConfirmDialog>
    ),
  };
}
