// Bounds the uploads or downloads that go on at once: in total, and for an account, so that one
// with slow clients leaves room for others.

import { KeyCounts } from '#lib/memory/key-counts.ts';
import { transfersBusy } from './errors.ts';

const maxTransfers = 64;
const maxPerAccount = 16;

export class Transfers {
  readonly #counts = new KeyCounts();
  #total = 0;

  /** Throws if too many go on. The returned function must be called once, when the transfer has ended. */
  begin(accountId: string): () => void {
    if (this.#total >= maxTransfers || this.#counts.get(accountId) >= maxPerAccount)
      throw transfersBusy();
    this.#total++;
    this.#counts.add(accountId);
    return () => {
      this.#total--;
      this.#counts.remove(accountId);
    };
  }
}
