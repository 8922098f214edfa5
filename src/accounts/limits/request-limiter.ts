// Admits or refuses a request: finds the limits of its key and its account, reserves what it may need from all
// of them at once, and gives back what it did not use.

import { toHeaderObject } from '#http/response-headers.ts';
import { type LimitReached, limitReached, tooLarge } from './errors.ts';
import { toHeaders } from './headers.ts';
import { type Arrival, createReading } from './reading.ts';
import type { LimitSettings } from './settings.ts';
import {
  type Amount,
  type LimitScope,
  type LimitStore,
  nothingOpen,
  type OpenReservation,
  type ReserveResult,
  type Ticket,
} from './store.ts';

/** What a request is charged to: a key and its account, or only the account for a signed-in user. */
export interface Payer {
  readonly accountId: string;
  readonly keyId: string | null;
}

export interface Reservation {
  /** The x-ratelimit-* headers as alternating names and values; null if no rate is limited. */
  readonly headers: readonly string[] | null;
  /** What another server needs to take it over; null if nothing is limited. */
  readonly ticket: Ticket | null;
  /** Reports what was used. Only the first call of `settle` and `leave` counts. */
  settle(used: Amount): void;
  /** Leaves it to the server that takes it over. */
  leave(): void;
}

export interface RequestLimiter {
  /**
   * Must be called before a large body is read. Rejects with LimitReached if no request of the payer could be
   * admitted now. Until it leaves, the arrival counts as a concurrent request of the payer on this server; nothing
   * else is charged.
   */
  arrive(payer: Payer): Promise<Arrival>;
  /** Rejects with LimitReached. */
  reserve(payer: Payer, wanted: Amount): Promise<Reservation>;
  /** Takes over the reservation of a request that was admitted earlier. Nothing refuses it or counts it again. */
  takeOver(payer: Payer, ticket: Ticket | null): Promise<Reservation>;
}

/** The smallest possible request. */
const minAmount: Amount = Object.freeze({ tokens: 1, costNano: 0 });

const unlimitedReservation: Reservation = Object.freeze({
  headers: null,
  ticket: null,
  ...nothingOpen,
});

/** For a request that was admitted when nothing was limited. */
const emptyTicket: Ticket = Object.freeze({ id: '', tokens: 0, costNano: 0 });

export function createRequestLimiter(
  settings: LimitSettings,
  store: LimitStore,
  onRefused: (refusal: LimitReached) => void = () => {},
): RequestLimiter {
  const reading = createReading();

  function refuse(
    scopes: readonly LimitScope[],
    wanted: Amount,
    result: ReserveResult,
  ): LimitReached {
    const refusal = toRefusal(scopes, wanted, result);
    onRefused(refusal);
    return refusal;
  }

  return {
    async arrive({ accountId, keyId }) {
      const { scopes, month } = await settings.find(accountId, keyId);
      if (scopes.length === 0) return { leave() {} };
      const lowered = reading.lower(scopes);
      const arrival = reading.enter(scopes);
      try {
        const result = await store.check(lowered, minAmount, month);
        if (result.refused !== null) throw refuse(scopes, minAmount, result);
        return arrival;
      } catch (error) {
        arrival.leave();
        throw error;
      }
    },
    async reserve({ accountId, keyId }, wanted) {
      const { scopes, month } = await settings.find(accountId, keyId);
      if (scopes.length === 0) return unlimitedReservation;
      const result = await store.reserve(reading.lower(scopes), wanted, month);
      if (result.refused !== null) throw refuse(scopes, wanted, result);
      const ticket = { id: result.id, ...wanted };
      return new LimitReservation(result, ticket, toHeaders(scopes, result.states));
    },
    async takeOver({ accountId, keyId }, given) {
      const { scopes, month } = await settings.find(accountId, keyId);
      if (scopes.length === 0) return unlimitedReservation;
      const ticket = given ?? emptyTicket;
      return new LimitReservation(await store.takeOver(scopes, ticket, month), ticket, null);
    },
  };
}

class LimitReservation implements Reservation {
  readonly headers: readonly string[] | null;
  readonly ticket: Ticket;
  #open: OpenReservation | null;

  constructor(open: OpenReservation, ticket: Ticket, headers: readonly string[] | null) {
    this.#open = open;
    this.ticket = ticket;
    this.headers = headers;
  }

  settle(used: Amount): void {
    this.#open?.settle(used);
    this.#open = null;
  }

  leave(): void {
    this.#open?.leave();
    this.#open = null;
  }
}

function toRefusal(
  scopes: readonly LimitScope[],
  wanted: Amount,
  { refused, states }: ReserveResult,
): LimitReached {
  const headers = toHeaderObject(toHeaders(scopes, states) ?? []);
  // A request that can never fit must not be retried, whichever limit refused it now.
  for (const scope of scopes) {
    const never = tooLarge(scope, wanted, headers);
    if (never !== null) return never;
  }
  const [scope, state] = refused ? [scopes[refused.scope], states[refused.scope]] : [];
  if (!refused || !scope || !state) throw new Error('the store refused for an unknown scope');
  return limitReached(refused.limit, scope, state, { wanted, headers });
}
