// The model's sequences and what their key-value caches hold, and the choice of the sequence in which a new prompt
// can reuse the most.

import type { RawContext } from './binding.ts';
import type { Generation } from './generation.ts';

export interface Slot {
  /** The number of the sequence in llama.cpp. */
  readonly id: number;
  /** The tokens whose keys and values the sequence holds, in order. */
  cache: number[];
  /** Null while the slot is free. */
  generation: Generation | null;
  /** Tokens to be computed: the rest of the prompt, or the token generated last. */
  pending: readonly number[];
  /** Larger for a slot that was used later. */
  lastUsed: number;
}

/** Copying a shorter prefix from another sequence costs about as much as reading it. */
const minCopyTokens = 16;

export function createSlots(count: number): Slot[] {
  return Array.from({ length: count }, (_, id) => ({
    id,
    cache: [],
    generation: null,
    pending: [],
    lastUsed: 0,
  }));
}

/**
 * Returns a free slot that holds the longest known prefix of the prompt, up to `maxReused` tokens; null if none is
 * free. A free slot with that prefix is taken if at least half of its cache is kept. Otherwise the prefix is copied to
 * the free slot unused for longest, so that a short common prefix does not evict a long cache.
 */
export async function claimSlot(
  context: RawContext,
  slots: readonly Slot[],
  prompt: readonly number[],
  maxReused: number,
): Promise<Slot | null> {
  const free = slots.filter((slot) => slot.generation === null);
  if (free.length === 0) return null;
  const oldest = free.reduce((best, slot) => (slot.lastUsed < best.lastUsed ? slot : best));
  let source = oldest;
  let shared = -1;
  for (const slot of slots) {
    const length = Math.min(commonPrefix(slot.cache, prompt), maxReused);
    if (length > shared || (length === shared && source.generation !== null)) {
      source = slot;
      shared = length;
    }
  }
  if (source.generation === null && shared * 2 >= source.cache.length) {
    truncate(context, source, shared);
    return source;
  }
  if (source !== oldest && shared >= minCopyTokens) {
    truncate(context, oldest, 0);
    try {
      await context.copySequenceStateFromOtherSequence(oldest.id, source.id);
    } catch (error) {
      // A part may have been copied.
      context.disposeSequence(oldest.id);
      throw error;
    }
    oldest.cache = source.cache.slice();
    truncate(context, oldest, shared);
  } else {
    truncate(context, oldest, source === oldest ? Math.max(shared, 0) : 0);
  }
  return oldest;
}

/** Removes everything after the first `length` tokens from the sequence. */
function truncate(context: RawContext, slot: Slot, length: number): void {
  if (slot.cache.length <= length) return;
  if (length > 0 && context.removeTokenCellsFromSequence(slot.id, length, -1)) {
    slot.cache.length = length;
  } else {
    // Recurrent models can't remove a part, so nothing is kept.
    context.disposeSequence(slot.id);
    slot.cache.length = 0;
  }
}

function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const max = Math.min(a.length, b.length);
  let length = 0;
  while (length < max && a[length] === b[length]) length++;
  return length;
}
