// What the playground must know of each model: its price, whether it takes images, and whether only a stand-in
// answers for it.

import { useQuery } from '@tanstack/react-query';
import type { Outcome } from '#accounts/conversations/schema.ts';
import type { ModelWeights, WeightsOverview } from '#inference/weights/schema.ts';
import { get } from '../api.ts';
import { useStandIns } from '../models/backends.ts';
import { toDefaultModel, useModels } from '../models/use-models.ts';
import { weightsKey } from '../models/weights.ts';
import { standIns as standInNames } from './turn-view.tsx';

export interface ModelFacts {
  /** Null while they load. */
  ids: string[] | null;
  error: unknown;
  defaultModel: string;
  isStandIn(id: string): boolean;
  /** US dollars per million tokens; undefined if it is unknown. */
  priceOf(id: string): ModelWeights['price'] | undefined;
  /** A stand-in takes only text. */
  takesImages(id: string): boolean;
  toCost(id: string, outcome: Outcome): number | null;
}

export function useModelFacts(): ModelFacts {
  const models = useModels();
  const standIns = useStandIns();
  const overview = useQuery({
    queryKey: weightsKey,
    queryFn: () => get<WeightsOverview>('/dashboard/api/weights'),
  });
  const byId = new Map(overview.data?.models.map((model) => [model.id, model]));
  const priceOf = (id: string) => byId.get(id)?.price;
  return {
    ids: models.data?.data.map(({ id }) => id) ?? (models.error ? [] : null),
    error: models.error,
    defaultModel: toDefaultModel(models.data?.data),
    isStandIn: (id) => standIns.has(id),
    priceOf,
    takesImages: (id) => !standIns.has(id) && (byId.get(id)?.input.includes('image') ?? false),
    toCost(id, { served_by, prompt_tokens, completion_tokens }) {
      const price = priceOf(id);
      if (served_by != null && served_by in standInNames) return 0;
      if (price === undefined || prompt_tokens == null || completion_tokens == null) return null;
      return (price.input * prompt_tokens + price.output * completion_tokens) / 1e6;
    },
  };
}
