// Lets a request in, or not: looks up what limits its key and its account have, takes what it may need
// from all of them at once, and gives back what it did not use.

import { limitReached, tooLarge } from './errors.ts';
import { toHeaders } from './headers.ts';
import type { Governed, LimitSettings } from './settings.ts';
import type { Amount, LimitStore, Outcome } from './store.ts';

/** Who pays: a key and its account, or the account alone for a person who is signed in. */
export interface Payer {
  readonly accountId: string;
  readonly keyId: string | null;
}

export interface Reservation {
  /** x-ratelimit-*; null when no rate is limited. */
  readonly headers: Record<string, string> | null;
  /** What it came to. Counts once, however often it is called. */
  settle(used: Amount): void;
}

export interface Limits {
  /** Throws LimitReached. No promise when everything needed is in memory: every request comes by here. */
  reserve(payer: Payer, ask: Amount): Reservation | Promise<Reservation>;
}

const free: Reservation = Object.freeze({ headers: null, settle() {} });

export function createLimits(settings: LimitSettings, store: LimitStore): Limits {
  function reserve({ accountId, keyId }: Payer, ask: Amount): Reservation | Promise<Reservation> {
    const governed = settings.find(accountId, keyId);
    return governed instanceof Promise
      ? governed.then((found) => admit(found, ask))
      : admit(governed, ask);
  }

  function admit(governed: Governed, ask: Amount): Reservation | Promise<Reservation> {
    const { scopes, month } = governed;
    if (scopes.length === 0) return free;
    for (const scope of scopes) {
      const never = tooLarge(scope, ask);
      if (never !== null) throw never;
    }
    const outcome = store.reserve(scopes, ask, month);
    return outcome instanceof Promise
      ? outcome.then((one) => toReservation(governed, ask, one))
      : toReservation(governed, ask, outcome);
  }

  return { reserve };
}

function toReservation({ scopes }: Governed, ask: Amount, outcome: Outcome): Reservation {
  const { refused, standings } = outcome;
  const headers = toHeaders(scopes, standings);
  if (refused !== null) {
    const [scope, standing] = [scopes[refused.scope], standings[refused.scope]];
    if (scope === undefined || standing === undefined) throw new Error('a scope nobody asked for');
    throw limitReached(refused.limit, scope, standing, ask, headers ?? {});
  }
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
