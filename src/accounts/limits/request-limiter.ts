// Admits or refuses a request: finds the limits of its key and its account, reserves what it may need from all
// of them at once, and gives back what it did not use.

import { toHeaderObject } from '#http/header-list.ts';
import { type LimitReached, limitReached, tooLarge } from './errors.ts';
import { toHeaders } from './headers.ts';
import { type Arrival, createReading } from './reading.ts';
import type { LimitSettings } from './settings.ts';
import type { Amount, LimitScope, LimitStore, ReserveResult } from './store.ts';

/** What a request is charged to: a key and its account, or only the account for a signed-in user. */
export interface Payer {
  readonly accountId: string;
  readonly keyId: string | null;
}

export interface Reservation {
  /** The x-ratelimit-* headers as alternating names and values; null if no rate is limited. */
  readonly headers: readonly string[] | null;
  /** Reports what was used. Only the first call counts. */
  settle(used: Amount): void;
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
}

/** The smallest possible request. */
const minAmount: Amount = Object.freeze({ tokens: 1, costNano: 0 });

const unlimitedReservation: Reservation = Object.freeze({ headers: null, settle() {} });

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
      return toReservation(result, toHeaders(scopes, result.states));
    },
  };
}

function toReservation(result: ReserveResult, headers: readonly string[] | null): Reservation {
  let isSettled = false;
  return {
    headers,
    settle(used) {
      if (isSettled) return;
      isSettled = true;
      result.settle(used);
    },
  };
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
