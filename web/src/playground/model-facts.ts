// What the playground must know of each model: its price, whether it takes images, and whether only a stand-in
// answers for it.

import type { Outcome } from '#accounts/conversations/schema.ts';
import type { ModelWeights } from '#inference/weights/schema.ts';
import { useStandIns } from '../models/backends.ts';
import { toDefaultModel, useChatModels, useModelOverview } from '../models/use-models.ts';
import { standInNames } from './turn-view.tsx';

export interface ModelFacts {
  /** The models that chat; null while they load. */
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
  const chats = useChatModels();
  const standIns = useStandIns();
  const overview = useModelOverview();
  const byId = new Map(overview.data?.models.map((model) => [model.id, model]));
  const priceOf = (id: string) => byId.get(id)?.price;
  return {
    ids: chats.ids ?? (chats.error ? [] : null),
    error: chats.error,
    defaultModel: toDefaultModel(chats.ids),
    isStandIn: (id) => standIns.has(id),
    priceOf,
    takesImages: (id) => !standIns.has(id) && (byId.get(id)?.input.includes('image') ?? false),
    toCost(id, { served_by, prompt_tokens, completion_tokens }) {
      const price = priceOf(id);
      if (served_by != null && standInNames.has(served_by)) return 0;
      if (price === undefined || prompt_tokens == null || completion_tokens == null) return null;
      return (price.input * prompt_tokens + price.output * completion_tokens) / 1e6;
    },
  };
}
