// The backends of each model.

import { useQuery } from '@tanstack/react-query';
import type { BackendView } from '#inference/backends/schema.ts';
import type { ModelWeights } from '#inference/weights/schema.ts';
import { getAll } from '../api.ts';
import { toShortName } from './weights.ts';

/** The server types that Millrace has specific support for. */
export const serverTypes = ['vllm', 'sglang', 'llama-server', 'ollama', 'openai'] as const;

export const backendsKey = ['backends'];
export const backendsPath = '/dashboard/api/backends';

/** Fetched every three seconds, because request rates change constantly. */
export function useBackends() {
  return useQuery({
    queryKey: backendsKey,
    queryFn: () => getAll<BackendView>(backendsPath),
    refetchInterval: 3000,
  });
}

export const standInLabel = 'stand-in, not the real model';

/** The ids of models that only a stand-in answers for. Empty while they load. */
export function useStandIns(): ReadonlySet<string> {
  const backends = useBackends();
  const standIns = backends.data?.data.filter(({ kind }) => kind === 'stand-in') ?? [];
  return new Set(standIns.map(({ model }) => model));
}

/** Shown for a model that had a backend, and has none. */
export const noBackendText = 'No backend. Requests get an error (503).';

/** The address of a model's own page. */
export const toModelPath = (model: string) => `/models/${encodeURIComponent(model)}`;

/** The address of the dialog that pulls the weights of a model. */
export const toPullPath = (model: string) => `/models/pull/${new URLSearchParams({ model })}`;

export const toBackendPath = ({ model, name }: Pick<BackendView, 'model' | 'name'>) =>
  `${backendsPath}/${encodeURIComponent(model)}/${encodeURIComponent(name)}`;

/** Weights are shown by their file name, other backends by the name their owner chose. */
export const toBackendName = (backend: BackendView, { weights }: ModelWeights) =>
  backend.kind === 'weights' && weights !== null ? toShortName(weights) : backend.name;
