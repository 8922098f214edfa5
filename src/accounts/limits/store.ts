// BOUNDARY. Where the counters of limits are: in this process, or in a Valkey or Redis that several servers
// share. Both count alike, and one test suite runs over both.

import type { LimitSet } from './limit-set.ts';

export interface Amount {
  /** Prompt and completion tokens together. */
  readonly tokens: number;
  readonly costNano: number;
}

/** A key or an account that has limits. */
export interface LimitScope {
  readonly kind: 'key' | 'account';
  readonly id: string;
  readonly accountId: string;
  readonly limits: LimitSet;
  /** The month's cost according to the database, up to a second old. The counter is never below it. */
  readonly spentNano: number;
  /**
   * The cost so far of requests that other servers run and that neither `spentNano` nor a counter contains. It is
   * added to each check but never to the counter: when the requests end, `spentNano` contains them.
   */
  readonly otherServersNano: number;
}

/**
 * How long a dead server's requests stay counted in a shared store. A live server renews its leases three times
 * in this period.
 */
export const leaseMs = 30_000;

export type LimitKind = 'budget' | 'requests' | 'tokens' | 'concurrent';

/** The limits in the order they are checked: one that waiting alone does not cure comes first. */
export const limitKinds: readonly LimitKind[] = ['budget', 'requests', 'tokens', 'concurrent'];

/** The counters of a scope after a request was admitted, or as they were when it was refused. */
export interface ScopeState {
  /** The debts of leaky buckets, in units of a rate per minute (`lib/limits/leaky-bucket.ts`). */
  readonly requestDebt: number;
  readonly tokenDebt: number;
  /** The number of requests that run. */
  readonly open: number;
  /** The month's cost, including `otherServersNano`. */
  readonly spentNano: number;
  /** The maximum cost of the requests that run. */
  readonly heldNano: number;
}

/** What a server needs to take over a reservation of another. */
export interface Ticket extends Amount {
  /** Names the reservation in a shared store; empty if it was counted in the memory of its server. */
  readonly id: string;
}

/** A request that is counted as running. Exactly one of the two methods must be called, once. */
export interface OpenReservation {
  /** Replaces the reserved amount by what was used, which may be more. */
  settle(used: Amount): void;
  /** Leaves the reservation to the server that takes it over, or to the end of its lease. */
  leave(): void;
}

/** For a request that was refused, or is not limited. */
export const nothingOpen: OpenReservation = Object.freeze({ settle() {}, leave() {} });

export interface ReserveResult extends OpenReservation {
  /** See `Ticket`. */
  readonly id: string;
  /** The first limit that refuses the request, and the index of its scope; null if it was admitted. */
  readonly refused: { readonly scope: number; readonly limit: LimitKind } | null;
  /** One state per scope, in their order. */
  readonly states: readonly ScopeState[];
}

export interface LimitStore {
  /**
   * Takes one request and the amount from all scopes, or nothing from any. Rejects if the shared store does not
   * answer; the one in memory never does.
   */
  reserve(scopes: readonly LimitScope[], wanted: Amount, month: string): Promise<ReserveResult>;
  /** Returns what `reserve` would, and takes nothing. */
  check(scopes: readonly LimitScope[], wanted: Amount, month: string): Promise<ReserveResult>;
  /**
   * Takes over the reservation of a request that was admitted before, here or on another server. It
   * was counted then, so no limit refuses it, and no rate counts it again.
   */
  takeOver(scopes: readonly LimitScope[], ticket: Ticket, month: string): Promise<OpenReservation>;
  close(): Promise<void>;
}
