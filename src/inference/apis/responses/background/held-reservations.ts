// Reservations of queued background responses, held until the responses run. Some responses arrived
// at this server. Others were adopted, because their server may be gone. A server that runs a
// response takes over its reservation; the others leave it.

import type { Reservation } from '#accounts/limits/request-limiter.ts';

interface Held {
  readonly reservation: Reservation;
  /** False until its response is in the database. */
  isQueued: boolean;
  /** True if it arrived elsewhere. Several servers may have adopted it, so that none of them may give it back. */
  readonly isAdopted: boolean;
}

/** Reservations that are compared with the queue at once. */
const maxChecked = 500;
export const nothing = Object.freeze({ tokens: 0, costNano: 0 });

/** Bounded by the queue of each account. */
export class HeldReservations {
  readonly #held = new Map<string, Held>();

  /** Holds a reservation while `insert` queues its response. Gives it back if that fails. */
  async hold(id: string, reservation: Reservation, insert: () => Promise<void>): Promise<void> {
    const held = { reservation, isQueued: false, isAdopted: false };
    this.#held.set(id, held);
    try {
      await insert();
      held.isQueued = true;
    } catch (error) {
      this.giveBack(id);
      throw error;
    }
  }

  has(id: string): boolean {
    return this.#held.has(id);
  }

  /** Holds what a response in the queue has reserved elsewhere. */
  adopt(id: string, reservation: Reservation): void {
    this.#held.set(id, { reservation, isQueued: true, isAdopted: true });
  }

  /** Undefined if it is not held here. The receiver must settle it. */
  take(id: string): Reservation | undefined {
    const held = this.#held.get(id);
    this.#held.delete(id);
    return held?.reservation;
  }

  /** For a response that will not run. An adopted reservation is only left: in Redis it ends with its lease. */
  giveBack(id: string): void {
    const { isAdopted } = this.#held.get(id) ?? {};
    const reservation = this.take(id);
    if (isAdopted) reservation?.leave();
    else reservation?.settle(nothing);
  }

  /** Leaves all to the servers that will run the responses. */
  leaveAll(): void {
    for (const id of this.#held.keys()) this.take(id)?.leave();
  }

  /** Gives back what cancelled responses reserved, and leaves what those reserved that another server runs. */
  async sort(findStates: (ids: string[]) => Promise<Map<string, string>>): Promise<void> {
    const held = [...this.#held].filter(([, { isQueued }]) => isQueued);
    const ids = held.slice(0, maxChecked).map(([id]) => id);
    if (ids.length === 0) return;
    const states = await findStates(ids);
    for (const id of ids) {
      const state = states.get(id);
      if (state === 'cancelled') this.giveBack(id);
      else if (state !== 'queued') this.take(id)?.leave();
    }
  }
}
