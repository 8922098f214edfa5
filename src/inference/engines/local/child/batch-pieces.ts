// The tokens that one slot adds to a batch: the token it generated last, or a piece of its prompt.

import type { Generation } from './generation.ts';
import type { Slot } from './slots.ts';

export interface Piece {
  readonly slot: Slot;
  readonly generation: Generation;
  readonly tokens: readonly number[];
  /** The indexes in `tokens` whose logits are needed. */
  readonly flagged: Uint32Array;
}

/** Each scored position holds logits for the whole vocabulary in memory. */
const maxScoredPieceTokens = 32;

/** True while the slot's sequence does not hold the whole prompt. */
export function isReading({ generation, cache }: Slot): boolean {
  return generation !== null && cache.length < generation.prompt.length;
}

export function toPiece(slot: Slot, length: number): Piece {
  const { generation } = slot;
  if (generation === null) throw new Error('An empty slot was batched');
  const tokens = slot.pending.slice(0, length);
  return { slot, generation, tokens, flagged: toFlagged(generation, tokens, slot.pending) };
}

function toFlagged(
  { scoresPrompt }: Generation,
  tokens: readonly number[],
  pending: readonly number[],
): Uint32Array {
  if (scoresPrompt) return Uint32Array.from(tokens.keys());
  const isLast = tokens.length === pending.length;
  return isLast ? Uint32Array.of(tokens.length - 1) : new Uint32Array(0);
}

/** Never leaves a single token for the next piece, because it would round differently on its own. */
export function toPieceLength({ pending, generation }: Slot, maxTokens: number): number {
  const max = generation?.scoresPrompt ? Math.min(maxTokens, maxScoredPieceTokens) : maxTokens;
  const length = Math.min(max, pending.length);
  return pending.length - length === 1 && length > 2 ? length - 1 : length;
}
