// The connections to one machine's ssh server that have not logged in. They are bounded apart from
// those that have, in all and for each source address, as by MaxStartups and
// PerSourceMaxStartups of OpenSSH: otherwise one client could keep everyone out by connecting and
// saying nothing.

import { KeyCounts } from '#lib/memory/key-counts.ts';
import { toNetwork } from '#lib/network/client-network.ts';

export const loginBounds = {
  /** Of one source. */
  perSource: 16,
  /** From this many on, new ones are dropped by chance: all of them at the maximum. */
  dropsFrom: 32,
  max: 64,
} as const;

export class Logins {
  readonly #random: () => number;
  readonly #bySource = new KeyCounts();
  #count = 0;

  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** Returns the function to call once the client has logged in or left, or null if the connection must be dropped. */
  enter(address: string): (() => void) | null {
    const { perSource, dropsFrom, max } = loginBounds;
    const source = toNetwork(address);
    const risk = (this.#count - dropsFrom + 1) / (max - dropsFrom + 1);
    if (this.#bySource.get(source) >= perSource || this.#random() < risk) return null;
    this.#count++;
    this.#bySource.add(source);
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      this.#count--;
      this.#bySource.remove(source);
    };
  }
}
