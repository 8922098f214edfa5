// The models of this server, and the default for when the user has not selected one.

import { useQuery } from '@tanstack/react-query';
import type { Model } from '#inference/schema.ts';
import type { WeightsOverview } from '#inference/weights/schema.ts';
import { get, type List } from '../api.ts';
import { weightsKey } from './weights.ts';

export function useModels() {
  return useQuery({ queryKey: ['models'], queryFn: () => get<List<Model>>('/v1/models') });
}

/** What the server knows of each model besides its id. */
export function useModelOverview() {
  return useQuery({
    queryKey: weightsKey,
    queryFn: () => get<WeightsOverview>('/dashboard/api/weights'),
  });
}

/** The repository of the hub with GGUF files of a model; empty if none is known. */
export function useGgufRepository(model: string | null): string {
  const { data } = useModelOverview();
  return data?.models.find(({ id }) => id === model)?.gguf_repo ?? '';
}

/** The ids of models that chat. Undefined until it is known which ones do. */
export function useChatModels(): { ids: string[] | undefined; error: unknown } {
  const models = useModels();
  const overview = useModelOverview();
  const others = overview.data?.models.filter(({ kind }) => kind !== 'chat').map(({ id }) => id);
  const error = models.error ?? overview.error;
  if (models.data === undefined || (others === undefined && !error))
    return { ids: undefined, error };
  const ids = models.data.data.map(({ id }) => id);
  return { ids: ids.filter((id) => !others?.includes(id)), error };
}

const preferred = 'llama3.1-8b-instruct';

export function toDefaultModel(ids: readonly string[] | undefined): string {
  const [first] = ids ?? [];
  if (first === undefined) return preferred;
  return ids?.includes(preferred) ? preferred : first;
}
