// What answers for each model, how it does, and changing it.

import { useQuery } from '@tanstack/react-query';
import type { BackendView } from '#inference/backends/schema.ts';
import { get, type List } from '../api.ts';

/** Those that the server knows by name. */
export const servers = ['vllm', 'sglang', 'llama-server', 'ollama', 'openai'] as const;

export const backendsKey = ['backends'];
const path = '/dashboard/api/backends';

/** Rates change all the time, so this list is read again while somebody looks. */
export function useBackends() {
  return useQuery({
    queryKey: backendsKey,
    queryFn: () => get<List<BackendView>>(path),
    refetchInterval: 3000,
  });
}

export const toBackendPath = ({ model, name }: Pick<BackendView, 'model' | 'name'>) =>
  `${path}/${encodeURIComponent(model)}/${encodeURIComponent(name)}`;
