// Counters in the memory of one process. Reserving and settling never wait, so each is exact under any number
// of concurrent callers.

import type { Clock } from '#lib/clock.ts';
import { type LeakyBucket, leak, newBucket, unit } from '#lib/limits/leaky-bucket.ts';
import type { LimitSet } from './limit-set.ts';
import {
  type Amount,
  type LimitKind,
  type LimitScope,
  type LimitStore,
  nothingOpen,
  type OpenReservation,
  type ReserveResult,
  type ScopeState,
} from './store.ts';

interface Counters {
  requests: LeakyBucket;
  tokens: LeakyBucket;
  open: number;
  month: string;
  spentNano: number;
  heldNano: number;
  usedAt: number;
}

/** A scope with its counters. */
interface CountedScope {
  readonly limits: LimitSet;
  readonly otherServersNano: number;
  readonly counters: Counters;
}

export interface MemoryStore extends LimitStore {
  /** Takes what another store has admitted, whatever the limits are. */
  count(scopes: readonly LimitScope[], wanted: Amount, month: string): OpenReservation;
}

const minuteMs = 60_000;
const nothing: Amount = Object.freeze({ tokens: 0, costNano: 0 });

export function createMemoryStore(clock: Clock, maxScopes = 100_000): MemoryStore {
  const countersById = new Map<string, Counters>();

  function findCounters(id: string, month: string, now: number): Counters {
    const known = countersById.get(id);
    if (known !== undefined) return known;
    if (countersById.size >= maxScopes) deleteIdle(countersById, now);
    const counters = newCounters(month, now);
    countersById.set(id, counters);
    return counters;
  }

  function toCounted(scopes: readonly LimitScope[], month: string): CountedScope[] {
    const now = clock.now();
    return scopes.map((scope) => {
      const counters = findCounters(scope.id, month, now);
      update(counters, scope, month, now);
      return { limits: scope.limits, otherServersNano: scope.otherServersNano, counters };
    });
  }

  function toOpen(
    counted: readonly CountedScope[],
    wanted: Amount,
    month: string,
  ): OpenReservation {
    const end = (used: Amount) => {
      for (const one of counted) settle(one, { wanted, used }, month, clock.now());
    };
    return { settle: end, leave: () => end(nothing) };
  }

  return {
    async reserve(scopes, wanted, month): Promise<ReserveResult> {
      const counted = toCounted(scopes, month);
      const refused = findRefusal(counted, wanted);
      if (refused === null) for (const one of counted) take(one, wanted);
      const states = counted.map(toState);
      return { id: '', refused, states, ...toOpen(counted, wanted, month) };
    },
    async check(scopes, wanted, month): Promise<ReserveResult> {
      const counted = toCounted(scopes, month);
      const states = counted.map(toState);
      return { id: '', refused: findRefusal(counted, wanted), states, ...nothingOpen };
    },
    count(scopes, wanted, month) {
      const counted = toCounted(scopes, month);
      for (const one of counted) take(one, wanted);
      return toOpen(counted, wanted, month);
    },
    async takeOver(scopes, { costNano }, month) {
      const counted = toCounted(scopes, month);
      for (const one of counted) hold(one, costNano);
      // Its tokens were counted by another process, which gives them back.
      return toOpen(counted, { tokens: 0, costNano }, month);
    },
    close: async () => {},
  };
}

const newCounters = (month: string, now: number): Counters => ({
  requests: newBucket(now),
  tokens: newBucket(now),
  open: 0,
  month,
  spentNano: 0,
  heldNano: 0,
  usedAt: now,
});

/** After a minute without a request all debt is paid back, and costs are in the database. */
function deleteIdle(countersById: Map<string, Counters>, now: number): void {
  for (const [id, { open, usedAt }] of countersById) {
    if (open === 0 && now - usedAt > minuteMs) countersById.delete(id);
  }
}

/** Brings the counters up to now. */
function update(
  counters: Counters,
  { limits, spentNano }: LimitScope,
  month: string,
  now: number,
): void {
  const { requestsPerMinute, tokensPerMinute } = limits;
  if (requestsPerMinute !== null) leak(counters.requests, requestsPerMinute, now);
  if (tokensPerMinute !== null) leak(counters.tokens, tokensPerMinute, now);
  // Never back: a request that read the month just before its end may arrive here just after it.
  if (month > counters.month) {
    counters.month = month;
    counters.spentNano = 0;
  }
  // Both may lag behind the true cost and neither exceeds it, so the larger one is closer.
  if (month === counters.month) counters.spentNano = Math.max(counters.spentNano, spentNano);
  counters.usedAt = now;
}

function settle(
  { limits, counters }: CountedScope,
  { wanted, used }: { wanted: Amount; used: Amount },
  month: string,
  now: number,
): void {
  counters.open--;
  counters.heldNano -= wanted.costNano;
  counters.usedAt = now;
  // The cost of a request that began in another month belongs to that month, as in the database.
  if (counters.month === month) counters.spentNano += used.costNano;
  if (limits.tokensPerMinute === null) return;
  leak(counters.tokens, limits.tokensPerMinute, now);
  const debt = counters.tokens.debt + (used.tokens - wanted.tokens) * unit;
  counters.tokens.debt = Math.max(0, debt);
}

const toState = ({ counters, otherServersNano }: CountedScope): ScopeState => ({
  requestDebt: counters.requests.debt,
  tokenDebt: counters.tokens.debt,
  open: counters.open,
  spentNano: counters.spentNano + otherServersNano,
  heldNano: counters.heldNano,
});

function findRefusal(scopes: readonly CountedScope[], wanted: Amount): ReserveResult['refused'] {
  for (const [index, scope] of scopes.entries()) {
    const limit = findExceeded(scope, wanted);
    if (limit !== null) return { scope: index, limit };
  }
  return null;
}

function findExceeded(
  { limits, otherServersNano, counters }: CountedScope,
  wanted: Amount,
): LimitKind | null {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetNano } = limits;
  const { requests, tokens, open, heldNano } = counters;
  const spentNano = counters.spentNano + otherServersNano;
  if (monthlyBudgetNano !== null && spentNano + heldNano + wanted.costNano > monthlyBudgetNano) {
    return 'budget';
  }
  if (requestsPerMinute !== null && requests.debt + unit > requestsPerMinute * unit) {
    return 'requests';
  }
  if (tokensPerMinute !== null && tokens.debt + wanted.tokens * unit > tokensPerMinute * unit) {
    return 'tokens';
  }
  return concurrentRequests !== null && open >= concurrentRequests ? 'concurrent' : null;
}

function take({ limits, counters }: CountedScope, wanted: Amount): void {
  if (limits.requestsPerMinute !== null) counters.requests.debt += unit;
  if (limits.tokensPerMinute !== null) counters.tokens.debt += wanted.tokens * unit;
  hold({ counters }, wanted.costNano);
}

function hold({ counters }: Pick<CountedScope, 'counters'>, costNano: number): void {
  counters.open++;
  counters.heldNano += costNano;
}
