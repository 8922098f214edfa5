// Lets a request in, or not: looks up what limits its key and its account have, takes what it may need
// from all of them at once, and gives back what it did not use.

import { toHeaderObject } from '#http/header-list.ts';
import { type LimitReached, limitReached, tooLarge } from './errors.ts';
import { toHeaders } from './headers.ts';
import { type Arrival, createReading } from './reading.ts';
import type { Governed, LimitSettings } from './settings.ts';
import type { Amount, LimitScope, LimitStore, Outcome } from './store.ts';

/** Who pays: a key and its account, or the account alone for a person who is signed in. */
export interface Payer {
  readonly accountId: string;
  readonly keyId: string | null;
}

export interface Reservation {
  /** x-ratelimit-*, names and values in turn; null when no rate is limited. */
  readonly headers: readonly string[] | null;
  /** What it came to. Counts once, however often it is called. */
  settle(used: Amount): void;
}

export interface Limits {
  /**
   * To be asked before a large body is read. Rejects with LimitReached if no request of the payer could be let in
   * now. Until it leaves, it is one of the payer's concurrent requests on this server; nothing else is charged.
   */
  arrive(payer: Payer): Promise<Arrival>;
  /** Throws LimitReached. No promise when everything needed is in memory: every request comes by here. */
  reserve(payer: Payer, ask: Amount): Reservation | Promise<Reservation>;
}

/** The smallest request there is. */
const least: Amount = Object.freeze({ tokens: 1, costNano: 0 });

const free: Reservation = Object.freeze({ headers: null, settle() {} });

export function createLimits(
  settings: LimitSettings,
  store: LimitStore,
  onRefused: (refusal: LimitReached) => void = () => {},
): Limits {
  const reading = createReading();

  async function arrive({ accountId, keyId }: Payer): Promise<Arrival> {
    const { scopes, month } = await settings.find(accountId, keyId);
    if (scopes.length === 0) return { leave() {} };
    const governed = reading.lower(scopes);
    const arrival = reading.enter(scopes);
    try {
      const outcome = await store.look(governed, least, month);
      if (outcome.refused !== null) throw refuse(scopes, least, outcome);
      return arrival;
    } catch (error) {
      arrival.leave();
      throw error;
    }
  }

  function reserve({ accountId, keyId }: Payer, ask: Amount): Reservation | Promise<Reservation> {
    const governed = settings.find(accountId, keyId);
    return governed instanceof Promise
      ? governed.then((found) => admit(found, ask))
      : admit(governed, ask);
  }

  function admit(governed: Governed, ask: Amount): Reservation | Promise<Reservation> {
    const { scopes, month } = governed;
    if (scopes.length === 0) return free;
    const outcome = store.reserve(reading.lower(scopes), ask, month);
    return outcome instanceof Promise
      ? outcome.then((one) => toReservation(governed, ask, one))
      : toReservation(governed, ask, outcome);
  }

  function toReservation({ scopes }: Governed, ask: Amount, outcome: Outcome): Reservation {
    if (outcome.refused !== null) throw refuse(scopes, ask, outcome);
    const headers = toHeaders(scopes, outcome.standings);
    let settled = false;
    return {
      headers,
      settle(used) {
        if (settled) return;
        settled = true;
        outcome.settle(used);
      },
    };
  }

  function refuse(scopes: readonly LimitScope[], ask: Amount, outcome: Outcome): LimitReached {
    const headers = toHeaders(scopes, outcome.standings);
    const refusal = toRefusal(scopes, ask, outcome, toHeaderObject(headers ?? []));
    onRefused(refusal);
    return refusal;
  }

  return { arrive, reserve };
}

function toRefusal(
  scopes: readonly LimitScope[],
  ask: Amount,
  { refused, standings }: Outcome,
  headers: Record<string, string>,
): LimitReached {
  // Whatever else refuses it now: what never fits is not to be tried again.
  for (const scope of scopes) {
    const never = tooLarge(scope, ask, headers);
    if (never !== null) return never;
  }
  const [scope, standing] = refused ? [scopes[refused.scope], standings[refused.scope]] : [];
  if (!refused || !scope || !standing) throw new Error('a scope nobody asked for');
  return limitReached(refused.limit, scope, standing, ask, headers);
}
