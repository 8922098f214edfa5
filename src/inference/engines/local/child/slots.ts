// The model's sequences and what their key-value caches hold, and the choice of the sequence that lets a
// new prompt reuse most of what was already computed.

import type { RawContext } from './binding.ts';

export interface Slot<Work> {
  readonly id: number;
  /** The tokens whose keys and values the sequence holds, in order. */
  cache: number[];
  work: Work | null;
  /** Prompt tokens still to be read. */
  pending: readonly number[];
  lastUsed: number;
}

/** Below this, copying a prefix from another sequence costs about as much as reading it. */
const leastCopy = 16;

export function createSlots<Work>(count: number): Slot<Work>[] {
  return Array.from({ length: count }, (_, id) => ({
    id,
    cache: [],
    work: null,
    pending: [],
    lastUsed: 0,
  }));
}

/**
 * Gives the prompt a free slot holding the longest known prefix of it, and returns the slot.
 * A free slot is taken over when that keeps at least half of what it remembers; otherwise the prefix is
 * copied to the slot unused for longest, so that a short common beginning destroys no long memory.
 */
export async function claim<Work>(
  context: RawContext,
  slots: readonly Slot<Work>[],
  prompt: readonly number[],
  reusable: number,
): Promise<Slot<Work> | null> {
  const free = slots.filter((slot) => slot.work === null);
  if (free.length === 0) return null;
  const oldest = free.reduce((best, slot) => (slot.lastUsed < best.lastUsed ? slot : best));
  let source = oldest;
  let shared = -1;
  for (const slot of slots) {
    const length = Math.min(commonPrefix(slot.cache, prompt), reusable);
    if (length > shared || (length === shared && source.work !== null)) {
      source = slot;
      shared = length;
    }
  }
  if (source.work === null && shared * 2 >= source.cache.length) {
    keep(context, source, shared);
    return source;
  }
  if (source !== oldest && shared >= leastCopy) {
    keep(context, oldest, 0);
    await context.copySequenceStateFromOtherSequence(oldest.id, source.id);
    oldest.cache = source.cache.slice();
    keep(context, oldest, shared);
  } else {
    keep(context, oldest, source === oldest ? Math.max(shared, 0) : 0);
  }
  return oldest;
}

/** Forgets everything after the first `length` tokens. */
export function keep<Work>(context: RawContext, slot: Slot<Work>, length: number): void {
  if (slot.cache.length <= length) return;
  if (length > 0 && context.removeTokenCellsFromSequence(slot.id, length, -1)) {
    slot.cache.length = length;
  } else {
    // Recurrent models can't forget a part; then nothing is kept.
    context.disposeSequence(slot.id);
    slot.cache.length = 0;
  }
}

export function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const limit = Math.min(a.length, b.length);
  let length = 0;
  while (length < limit && a[length] === b[length]) length++;
  return length;
}
