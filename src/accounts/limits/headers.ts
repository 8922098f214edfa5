// The x-ratelimit-* headers: each rate of the key or the account, whichever has less left, as it is after this
// request.

import { remaining, resetAfter } from './rates.ts';
import type { LimitScope, ScopeState } from './store.ts';

const rates = [
  { perMinute: 'requestsPerMinute', debt: 'requestDebt', name: 'requests' },
  { perMinute: 'tokensPerMinute', debt: 'tokenDebt', name: 'tokens' },
] as const;

/** Alternating names and values; null if neither rate is limited. */
export function toHeaders(
  scopes: readonly LimitScope[],
  states: readonly ScopeState[],
): string[] | null {
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
