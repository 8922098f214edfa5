// Drains, resumes and removes backends. Only removing asks for confirmation: draining can be undone.

import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { BackendView } from '#inference/backends/schema.ts';
import { patch } from '../api.ts';
import { useDelete } from '../components/use-delete.tsx';
import type { BackendAction } from './backend-row.tsx';
import { backendsKey, toBackendPath } from './backends.ts';

interface BackendActions {
  run: (backend: BackendView, action: BackendAction) => void;
  error: Error | null;
  dialog: ReactNode;
}

export function useBackendActions(): BackendActions {
  const client = useQueryClient();
  const drain = useMutation({
    mutationFn: ({ backend, draining }: { backend: BackendView; draining: boolean }) =>
      patch(toBackendPath(backend), { draining }),
    onSuccess: () => client.invalidateQueries({ queryKey: backendsKey }),
  });
  const removal = useDelete<BackendView>({
    action: 'Remove',
    nameOf: ({ name }) => name,
    warning: ({ model }) =>
      `It gets no new requests for ${model}. Requests in progress can finish. Its API key is deleted.`,
    pathOf: toBackendPath,
    queryKeys: [backendsKey],
    doneMessage: ({ name }) => `“${name}” is removed once its requests have finished.`,
  });
  return {
    run(backend, action) {
      if (action === 'remove') removal.ask(backend);
      else drain.mutate({ backend, draining: action === 'drain' });
    },
    error: drain.error,
    dialog: removal.dialog,
  };
}
