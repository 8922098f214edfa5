// The text of responses that stream in. It is kept beside the conversation, so that a new piece renders its turn and not
// the page.

import { useSyncExternalStore } from 'react';
import type { ShownTurn } from './conversation.ts';

type Part = Pick<ShownTurn, 'text' | 'reasoning' | 'reasoning_ms'>;

export interface GrowingTurns {
  find(id: string): Part | undefined;
  set(id: string, part: Part): void;
  clear(): void;
  subscribe(listener: () => void): () => void;
}

export function createGrowingTurns(): GrowingTurns {
  const parts = new Map<string, Part>();
  const listeners = new Set<() => void>();
  return {
    find: (id) => parts.get(id),
    set(id, part) {
      parts.set(id, part);
      for (const listener of listeners) listener();
    },
    clear: () => parts.clear(),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

const noSubscription = () => () => {};

/** The turn with what has arrived of it. A turn that has ended is complete itself. */
export function useGrowingTurn(turn: ShownTurn, growing: GrowingTurns | undefined): ShownTurn {
  const part = useSyncExternalStore(growing?.subscribe ?? noSubscription, () =>
    growing?.find(turn.id),
  );
  return part === undefined || turn.outcome != null ? turn : { ...turn, ...part };
}
