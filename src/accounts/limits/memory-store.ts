// Counters of one process. Nothing here waits, so whatever is decided in one call is exact under any
// number of callers.

import type { Clock } from '#lib/clock.ts';
import { type Bucket, leak, newBucket, unit } from './bucket.ts';
import type { LimitSet } from './limit-set.ts';
import type { Amount, LimitKind, LimitScope, LimitStore, Outcome, Standing } from './store.ts';

interface Counters {
  requests: Bucket;
  tokens: Bucket;
  open: number;
  month: string;
  spentNano: number;
  heldNano: number;
  usedAt: number;
}

interface Limited {
  readonly limits: LimitSet;
  readonly elsewhereNano: number;
  readonly counters: Counters;
}

const minuteMs = 60_000;

export function createMemoryStore(clock: Clock, maxScopes = 100_000): LimitStore {
  const byId = new Map<string, Counters>();

  function reserve(scopes: readonly LimitScope[], ask: Amount, month: string): Outcome {
    const all = toLimited(scopes, month);
    const refused = findRefused(all, ask);
    if (refused === null) for (const one of all) take(one, ask);
    return {
      refused,
      standings: all.map(toStanding),
      settle(used) {
        for (const one of all) giveBack(one, ask, used, month);
      },
    };
  }

  function look(scopes: readonly LimitScope[], ask: Amount, month: string): Outcome {
    const all = toLimited(scopes, month);
    return { refused: findRefused(all, ask), standings: all.map(toStanding), settle() {} };
  }

  function toLimited(scopes: readonly LimitScope[], month: string): Limited[] {
    const now = clock.now();
    return scopes.map((scope) => ({
      limits: scope.limits,
      elsewhereNano: scope.elsewhereNano,
      counters: bring(scope, month, now),
    }));
  }

  /** The counters as they are now. */
  function bring({ id, limits, spentNano }: LimitScope, month: string, now: number): Counters {
    const counters = byId.get(id) ?? start(id, month, now);
    const { requestsPerMinute, tokensPerMinute } = limits;
    if (requestsPerMinute !== null) leak(counters.requests, requestsPerMinute, now);
    if (tokensPerMinute !== null) leak(counters.tokens, tokensPerMinute, now);
    // Never back: who looked just before the month's end may come just after it.
    if (month > counters.month) {
      counters.month = month;
      counters.spentNano = 0;
    }
    // Both may lag behind the truth, neither is ever ahead of it: the larger one is nearer.
    if (month === counters.month) counters.spentNano = Math.max(counters.spentNano, spentNano);
    counters.usedAt = now;
    return counters;
  }

  function start(id: string, month: string, now: number): Counters {
    if (byId.size >= maxScopes) forgetIdle(now);
    const counters: Counters = {
      requests: newBucket(now),
      tokens: newBucket(now),
      open: 0,
      month,
      spentNano: 0,
      heldNano: 0,
      usedAt: now,
    };
    byId.set(id, counters);
    return counters;
  }

  /** After a minute without a request rates are back at their full, and costs are in the database. */
  function forgetIdle(now: number): void {
    for (const [id, { open, usedAt }] of byId) {
      if (open === 0 && now - usedAt > minuteMs) byId.delete(id);
    }
  }

  function giveBack({ limits, counters }: Limited, ask: Amount, used: Amount, month: string): void {
    counters.open--;
    counters.heldNano -= ask.costNano;
    counters.usedAt = clock.now();
    // What began in another month is that month's, in the database too.
    if (counters.month === month) counters.spentNano += used.costNano;
    if (limits.tokensPerMinute === null) return;
    leak(counters.tokens, limits.tokensPerMinute, clock.now());
    const debt = counters.tokens.debt + (used.tokens - ask.tokens) * unit;
    counters.tokens.debt = Math.max(0, debt);
  }

  return { reserve, look, close: async () => {} };
}

const toStanding = ({ counters, elsewhereNano }: Limited): Standing => ({
  requestDebt: counters.requests.debt,
  tokenDebt: counters.tokens.debt,
  open: counters.open,
  spentNano: counters.spentNano + elsewhereNano,
  heldNano: counters.heldNano,
});

function findRefused(all: readonly Limited[], ask: Amount): Outcome['refused'] {
  for (const [scope, one] of all.entries()) {
    const limit = findOver(one, ask);
    if (limit !== null) return { scope, limit };
  }
  return null;
}

function findOver({ limits, elsewhereNano, counters }: Limited, ask: Amount): LimitKind | null {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetNano } = limits;
  const { requests, tokens, open, heldNano } = counters;
  const spentNano = counters.spentNano + elsewhereNano;
  if (monthlyBudgetNano !== null && spentNano + heldNano + ask.costNano > monthlyBudgetNano) {
    return 'budget';
  }
  if (requestsPerMinute !== null && requests.debt + unit > requestsPerMinute * unit) {
    return 'requests';
  }
  if (tokensPerMinute !== null && tokens.debt + ask.tokens * unit > tokensPerMinute * unit) {
    return 'tokens';
  }
  return concurrentRequests !== null && open >= concurrentRequests ? 'concurrent' : null;
}

function take({ limits, counters }: Limited, ask: Amount): void {
  if (limits.requestsPerMinute !== null) counters.requests.debt += unit;
  if (limits.tokensPerMinute !== null) counters.tokens.debt += ask.tokens * unit;
  counters.open++;
  counters.heldNano += ask.costNano;
}
