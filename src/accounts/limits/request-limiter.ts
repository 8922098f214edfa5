// Admits or refuses a request: finds the limits of its key and its account, reserves what it may need from all
// of them at once, gives back what it did not use, and tells the client what is left (the x-ratelimit-* headers).

import { toHeaderObject } from '#http/response-headers.ts';
import { remaining, resetAfter } from '#lib/limits/leaky-bucket.ts';
import { KeyCounts } from '#lib/memory/key-counts.ts';
import { type LimitReached, limitReached, tooLarge } from './errors.ts';
import type { LimitSettings } from './settings.ts';
import {
  type Amount,
  type LimitScope,
  type LimitStore,
  nothingOpen,
  type OpenReservation,
  type ReserveResult,
  type ScopeState,
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
  /** What the request may cost at most; Infinity if nothing was limited when it was admitted. */
  readonly maxCostNano: number;
  /** Reports what was used. Only the first call of `settle` and `leave` counts. */
  settle(used: Amount): void;
  /** Leaves it to the server that takes it over. */
  leave(): void;
}

/** A request whose body is being read. */
export interface Arrival {
  /** Its body has been read, or never will be. Counts once, however often it is called. */
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
  maxCostNano: Number.POSITIVE_INFINITY,
  ...nothingOpen,
});

/** For a request that was admitted when nothing was limited. */
const emptyTicket: Ticket = Object.freeze({ id: '', tokens: 0, costNano: 0 });

export function createRequestLimiter(
  settings: LimitSettings,
  store: LimitStore,
  onRefused: (refusal: LimitReached) => void = () => {},
): RequestLimiter {
  /** Large bodies being read on this server, by scope. Small requests pay one comparison. */
  const arrived = new KeyCounts();

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
      const lowered = lowerAll(scopes, arrived);
      const arrival = enter(scopes, arrived);
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
      const result = await store.reserve(lowerAll(scopes, arrived), wanted, month);
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

/** The same scopes, with as many concurrent requests fewer as have arrived and are not reserved yet. */
function lowerAll(scopes: readonly LimitScope[], arrived: KeyCounts): readonly LimitScope[] {
  return arrived.size === 0 ? scopes : scopes.map((scope) => lower(scope, arrived.get(scope.id)));
}

function lower(scope: LimitScope, count: number): LimitScope {
  const { concurrentRequests: limit } = scope.limits;
  if (limit === null || count === 0) return scope;
  const concurrentRequests = Math.max(0, limit - count);
  return { ...scope, limits: { ...scope.limits, concurrentRequests } };
}

function enter(scopes: readonly LimitScope[], arrived: KeyCounts): Arrival {
  for (const { id } of scopes) arrived.add(id);
  let isOver = false;
  return {
    leave() {
      if (isOver) return;
      isOver = true;
      for (const { id } of scopes) arrived.remove(id);
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

  get maxCostNano(): number {
    return this.ticket === emptyTicket ? Number.POSITIVE_INFINITY : this.ticket.costNano;
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

const rates = [
  { perMinute: 'requestsPerMinute', debt: 'requestDebt', name: 'requests' },
  { perMinute: 'tokensPerMinute', debt: 'tokenDebt', name: 'tokens' },
] as const;

/**
 * Each rate of the key or the account, whichever has less left, as it is after this request.
 * Alternating names and values; null if neither rate is limited.
 */
function toHeaders(scopes: readonly LimitScope[], states: readonly ScopeState[]): string[] | null {
  const headers: string[] = [];
  for (const rate of rates) {
    const index = findTightest(scopes, states, rate);
    const limit = scopes[index]?.limits[rate.perMinute] ?? null;
    if (limit === null) continue;
    const debt = states[index]?.[rate.debt] ?? 0;
    headers.push(`x-ratelimit-limit-${rate.name}`, String(limit));
    headers.push(`x-ratelimit-remaining-${rate.name}`, String(remaining(debt, limit)));
    headers.push(`x-ratelimit-reset-${rate.name}`, toDuration(resetAfter(debt, limit)));
  }
  return headers.length === 0 ? null : headers;
}

/** The index of the scope that has the least left of a rate; -1 if no scope limits it. */
function findTightest(
  scopes: readonly LimitScope[],
  states: readonly ScopeState[],
  rate: (typeof rates)[number],
): number {
  let tightest = -1;
  let least = Number.POSITIVE_INFINITY;
  for (const [index, { limits }] of scopes.entries()) {
    const perMinute = limits[rate.perMinute];
    if (perMinute === null) continue;
    const left = remaining(states[index]?.[rate.debt] ?? 0, perMinute);
    if (left >= least) continue;
    tightest = index;
    least = left;
  }
  return tightest;
}

/** Formats a duration as OpenAI does: `6ms`, `1.5s`, `6m0s`. */
function toDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = `${(ms % 60_000) / 1000}s`;
  return minutes === 0 ? seconds : `${minutes}m${seconds}`;
}
