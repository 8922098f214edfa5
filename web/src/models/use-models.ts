// The models of this server, and the default for when the user has not selected one.

import { useQuery } from '@tanstack/react-query';
import type { Model } from '#inference/schema.ts';
import { get, type List } from '../api.ts';

export function useModels() {
  return useQuery({ queryKey: ['models'], queryFn: () => get<List<Model>>('/v1/models') });
}

const preferred = 'llama3.1-8b-instruct';

export function toDefaultModel(models: Model[] | undefined): string {
  const [first] = models ?? [];
  if (first === undefined) return preferred;
  return (models?.find(({ id }) => id === preferred) ?? first).id;
}
