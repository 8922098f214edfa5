// The models of this server, and the one to show when none was chosen.

import { useQuery } from '@tanstack/react-query';
import type { Model } from '#inference/schema.ts';
import { get, type List } from '../api.ts';

export function useModels() {
  return useQuery({ queryKey: ['models'], queryFn: () => get<List<Model>>('/v1/models') });
}

const usual = 'llama3.1-8b-instruct';

export function toDefaultModel(models: Model[] | undefined): string {
  const [first] = models ?? [];
  if (first === undefined) return usual;
  return (models?.find(({ id }) => id === usual) ?? first).id;
}
