// BOUNDARY. Where the counters are: in this process, or in a Valkey or Redis that several replicas share.
// Both count alike, and one suite of tests runs over both.

import type { LimitSet } from './limit-set.ts';

export interface Amount {
  /** Prompt and completion together. */
  readonly tokens: number;
  readonly costNano: number;
}

/** One that has limits: the key, or the account it belongs to. */
export interface LimitScope {
  readonly kind: 'key' | 'account';
  readonly id: string;
  readonly accountId: string;
  readonly limits: LimitSet;
  /** This month's cost by the database, perhaps a second old. The counter is never below it. */
  readonly spentNano: number;
  /**
   * What requests of other servers have cost so far that are neither in that sum nor in a counter. Counts beside
   * the counter and is never added to it: when they end, the sum has them.
   */
  readonly elsewhereNano: number;
}

/**
 * How long what a dead replica held stays held, where replicas share their counters. A living one renews it three
 * times as often.
 */
export const leaseMs = 30_000;

export type LimitKind = 'budget' | 'requests' | 'tokens' | 'concurrent';

/** In the order they are looked at: what time alone won't mend comes first. */
export const limitKinds: readonly LimitKind[] = ['budget', 'requests', 'tokens', 'concurrent'];

/** How a scope stands after a request was let in, or when it was refused. */
export interface Standing {
  /** As in bucket.ts. */
  readonly requestDebt: number;
  readonly tokenDebt: number;
  readonly open: number;
  /** What this month has cost, elsewhere too. */
  readonly spentNano: number;
  /** What open requests may cost at most. */
  readonly heldNano: number;
}

export interface Outcome {
  readonly refused: { readonly scope: number; readonly limit: LimitKind } | null;
  /** In the order of the scopes. */
  readonly standings: readonly Standing[];
  /** Gives back what was not used, or takes what was used beyond. To be called once, if let in. */
  settle(used: Amount): void;
}

export interface LimitStore {
  /**
   * Takes one request and the amount from all scopes, or nothing from any. Throws nothing in memory;
   * rejects when the shared store does not answer.
   */
  reserve(scopes: readonly LimitScope[], ask: Amount, month: string): Outcome | Promise<Outcome>;
  /** Says what `reserve` would, and takes nothing. */
  look(scopes: readonly LimitScope[], ask: Amount, month: string): Outcome | Promise<Outcome>;
  close(): Promise<void>;
}
