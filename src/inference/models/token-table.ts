// The tokens of a vocabulary, found by their bytes.

/** A power of two, about twice the number of tokens. */
const slots = 2 ** 18;
const none = -1;

/** A hash table with open addressing over the bytes of the file. It takes 3 MB for 128,000 tokens. */
export class TokenTable {
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
