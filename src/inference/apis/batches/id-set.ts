// The ids of a batch, to find one that occurs twice. It keeps 64 bits of a keyed hash of each: a million ids take
// 32 MiB. Two different ids of a million share theirs with a probability of 3 in 100 million.

import { hash, randomUUID } from 'node:crypto';

const startSize = 1_024;

export class IdSet {
  readonly #key = randomUUID();
  /** Two words for each place; both are 0 if it is free. */
  #words = new Uint32Array(startSize * 2);
  #count = 0;

  /** Returns false if the id was added before. */
  add(id: string): boolean {
    const digest = hash('sha256', this.#key + id, 'buffer');
    // The first word of a used place is never 0.
    if (!this.#insert(digest.readUInt32LE(0) || 1, digest.readUInt32LE(4))) return false;
    this.#count++;
    if (this.#count * 4 > this.#words.length) this.#grow();
    return true;
  }

  #insert(high: number, low: number): boolean {
    const words = this.#words;
    const mask = words.length / 2 - 1;
    for (let place = low & mask; ; place = (place + 1) & mask) {
      const at = place * 2;
      if (words[at] === 0) {
        words[at] = high;
        words[at + 1] = low;
        return true;
      }
      if (words[at] === high && words[at + 1] === low) return false;
    }
  }

  #grow(): void {
    const old = this.#words;
    this.#words = new Uint32Array(old.length * 2);
    for (let at = 0; at < old.length; at += 2) {
      const high = old[at] as number;
      if (high !== 0) this.#insert(high, old[at + 1] as number);
    }
  }
}
