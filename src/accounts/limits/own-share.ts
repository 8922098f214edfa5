// Counts in the memory of this server what the shared store admits here, so that the server continues from there while
// the shared store does not answer. Otherwise it would admit each limit once more.

import type { MemoryStore } from './memory-store.ts';
import type { LimitStore, OpenReservation } from './store.ts';

export function withOwnShare(shared: LimitStore, own: MemoryStore): LimitStore {
  return {
    ...shared,
    async reserve(scopes, wanted, month) {
      const result = await shared.reserve(scopes, wanted, month);
      if (result.refused !== null) return result;
      return { ...result, ...both(result, own.count(scopes, wanted, month)) };
    },
    async takeOver(scopes, ticket, month) {
      const open = await shared.takeOver(scopes, ticket, month);
      return both(open, await own.takeOver(scopes, ticket, month));
    },
  };
}

const both = (one: OpenReservation, other: OpenReservation): OpenReservation => ({
  settle(used) {
    one.settle(used);
    other.settle(used);
  },
  leave() {
    one.leave();
    other.leave();
  },
});
