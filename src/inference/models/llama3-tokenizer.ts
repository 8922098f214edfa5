// Counts tokens of the Llama-3 vocabulary. The tokenizer of the vocabulary's own package has the same counts, but takes
// 75 MB of memory, most of it WebAssembly.

import { NumberHeap } from '#lib/memory/number-heap.ts';
import { TokenTable } from './token-table.ts';
import { readVocabularyFile, type VocabularyFile } from './vocabulary-file.ts';

/** Counts the tokens of a text. The name of a special token counts as that token, as engines read it. */
export type CountTokens = (text: string) => number;

/** Those that follow in the file are special. */
const ordinaryTokens = 128_000;

/**
 * Splits a text into pieces that are encoded each by itself, as the model was trained. Its white space is Unicode's,
 * and JavaScript's differs.
 */
const piecePattern =
  /(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\p{White_Space}\p{L}\p{N}]+[\r\n]*|\p{White_Space}*[\r\n]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

export function createLlama3Tokenizer(file: Buffer): CountTokens {
  const vocabulary = readVocabularyFile(file);
  const table = new TokenTable(vocabulary.bytes, vocabulary.starts.slice(0, ordinaryTokens + 1));
  const specialPattern = toSpecialPattern(vocabulary);
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

function toSpecialPattern({ bytes, starts }: VocabularyFile): RegExp {
  const names: string[] = [];
  for (let id = ordinaryTokens; id + 1 < starts.length; id++)
    names.push(RegExp.escape(bytes.toString('utf8', starts[id], starts[id + 1])));
  return new RegExp(names.join('|'));
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
