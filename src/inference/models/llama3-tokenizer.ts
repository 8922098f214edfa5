// Counts tokens of the Llama-3 vocabulary. The tokenizer of the vocabulary's package splits white
// space as JavaScript does, and takes many times the memory.

import { NumberHeap } from '#lib/memory/number-heap.ts';
import type { Vocabulary } from './llama3-vocabulary.ts';

/** Counts the tokens of a text. The name of a special token counts as that token, as engines read it. */
type CountTokens = (text: string) => number;

/**
 * Splits a text into pieces that are encoded each by itself, as the model was trained. Its white space is Unicode's,
 * and JavaScript's differs.
 */
const piecePattern =
  /(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\p{White_Space}\p{L}\p{N}]+[\r\n]*|\p{White_Space}*[\r\n]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

export function createLlama3Tokenizer({ bytes: tokens, starts, special }: Vocabulary): CountTokens {
  const table = new TokenTable(tokens, starts);
  const specialPattern = new RegExp(special.map((name) => RegExp.escape(name)).join('|'));
  const merger = new Merger(table);
  const encoder = new TextEncoder();
  let bytes = new Uint8Array(1024);

  function countPiece(piece: string): number {
    // A character of UTF-16 has up to three bytes in UTF-8.
    if (piece.length * 3 > bytes.length) bytes = new Uint8Array(piece.length * 3);
    const length = writeAscii(piece, bytes) ?? encoder.encodeInto(piece, bytes).written;
    return table.find(bytes, 0, length) === -1 ? merger.count(bytes, length) : 1;
  }

  return (text) => {
    const parts = text.split(specialPattern);
    let total = parts.length - 1;
    for (const part of parts)
      for (const piece of part.match(piecePattern) ?? []) total += countPiece(piece);
    return total;
  };
}

/** Returns the length; null if the text is not ASCII. */
function writeAscii(text: string, bytes: Uint8Array): number | null {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) return null;
    bytes[at] = code;
  }
  return text.length;
}

/** Byte pair encoding: of all neighbours that together are a token, those with the lowest rank are merged first. */
class Merger {
  readonly #table: TokenTable;
  readonly #heap = new NumberHeap();
  /** By the first byte of a part: the first bytes of its neighbours, and the rank of it and the next one together. */
  #next = new Int32Array(0);
  #previous = new Int32Array(0);
  #ranks = new Int32Array(0);

  constructor(table: TokenTable) {
    this.#table = table;
  }

  /** Takes n log n steps for n bytes. */
  count(bytes: Uint8Array, length: number): number {
    this.#begin(length);
    for (let at = 0; at < length; at++) this.#rank(bytes, length, at);
    let parts = length;
    for (let key = this.#heap.pop(); key !== undefined; key = this.#heap.pop()) {
      const at = key % length;
      // Since it was added, the part or its neighbour may have been merged.
      if (this.#ranks[at] !== Math.floor(key / length)) continue;
      const merged = this.#next[at] ?? length;
      const after = this.#next[merged] ?? length;
      this.#ranks[merged] = -1;
      this.#next[at] = after;
      if (after < length) this.#previous[after] = at;
      this.#rank(bytes, length, at);
      if (at > 0) this.#rank(bytes, length, this.#previous[at] ?? 0);
      parts--;
    }
    return parts;
  }

  #begin(length: number): void {
    if (length > this.#next.length) {
      this.#next = new Int32Array(length);
      this.#previous = new Int32Array(length);
      this.#ranks = new Int32Array(length);
    }
    for (let at = 0; at < length; at++) {
      this.#next[at] = at + 1;
      this.#previous[at] = at - 1;
    }
  }

  /** Ranks a part with its next neighbour. */
  #rank(bytes: Uint8Array, length: number, at: number): void {
    const next = this.#next[at] ?? length;
    const rank = next < length ? this.#table.find(bytes, at, this.#next[next] ?? length) : -1;
    this.#ranks[at] = rank;
    if (rank !== -1) this.#heap.push(rank * length + at);
  }
}

/** A power of two, about twice the number of tokens. */
const slots = 2 ** 18;
const none = -1;

/** A hash table with open addressing over the bytes of the file. It takes 3 MB for 128,000 tokens. */
class TokenTable {
  readonly #bytes: Uint8Array;
  /** Where each token starts; the last entry is the end. */
  readonly #starts: Uint32Array;
  readonly #ranks = new Int32Array(slots).fill(none);
  readonly #maxLength: number;

  /** The tokens are in the order of their ranks, one after the other. */
  constructor(bytes: Uint8Array, starts: Uint32Array) {
    this.#bytes = bytes;
    this.#starts = starts;
    let maxLength = 0;
    for (let rank = 0; rank + 1 < starts.length; rank++) {
      const start = starts[rank] ?? 0;
      const end = starts[rank + 1] ?? 0;
      maxLength = Math.max(maxLength, end - start);
      let slot = toSlot(bytes, start, end);
      while (this.#ranks[slot] !== none) slot = (slot + 1) % slots;
      this.#ranks[slot] = rank;
    }
    this.#maxLength = maxLength;
  }

  /** Returns the rank of the token that these bytes are; -1 if they are none. */
  find(text: Uint8Array, start: number, end: number): number {
    if (end - start > this.#maxLength) return none;
    for (let slot = toSlot(text, start, end); ; slot = (slot + 1) % slots) {
      const rank = this.#ranks[slot] ?? none;
      if (rank === none || this.#isToken(rank, text, start, end)) return rank;
    }
  }

  #isToken(rank: number, text: Uint8Array, start: number, end: number): boolean {
    const offset = (this.#starts[rank] ?? 0) - start;
    if (this.#starts[rank + 1] !== end + offset) return false;
    for (let at = start; at < end; at++) if (this.#bytes[at + offset] !== text[at]) return false;
    return true;
  }
}

/** The hash is FNV-1a, folded because only its low bits are used. */
function toSlot(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  return (hash ^ (hash >>> 15)) & (slots - 1);
}
