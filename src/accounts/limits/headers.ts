// The x-ratelimit-* headers: what is enforced, of the key or the account, whichever has less left. Both say
// how it is after this request.

import { remaining, resetAfter } from './bucket.ts';
import type { LimitScope, Standing } from './store.ts';

/** What is said of each rate. Made for every request, so the names are put together once. */
const rates = [
  { perMinute: 'requestsPerMinute', debt: 'requestDebt', names: toNames('requests') },
  { perMinute: 'tokensPerMinute', debt: 'tokenDebt', names: toNames('tokens') },
] as const;

function toNames(rate: 'requests' | 'tokens') {
  return {
    limit: `x-ratelimit-limit-${rate}`,
    remaining: `x-ratelimit-remaining-${rate}`,
    reset: `x-ratelimit-reset-${rate}`,
  };
}

/** Names and values in turn. Null when neither rate is limited. */
export function toHeaders(
  scopes: readonly LimitScope[],
  standings: readonly Standing[],
): string[] | null {
  let headers: string[] | null = null;
  for (const rate of rates) {
    const at = tightest(scopes, standings, rate);
    const limit = scopes[at]?.limits[rate.perMinute] ?? null;
    if (limit === null) continue;
    const debt = standings[at]?.[rate.debt] ?? 0;
    headers ??= [];
    headers.push(rate.names.limit, String(limit));
    headers.push(rate.names.remaining, String(remaining(debt, limit)));
    headers.push(rate.names.reset, toDuration(resetAfter(debt, limit)));
  }
  return headers;
}

/** Which of the scopes has the least left of a rate; -1 where it is not limited. */
function tightest(
  scopes: readonly LimitScope[],
  standings: readonly Standing[],
  rate: (typeof rates)[number],
): number {
  let found = -1;
  let least = Number.POSITIVE_INFINITY;
  for (let at = 0; at < scopes.length; at++) {
    const perMinute = scopes[at]?.limits[rate.perMinute] ?? null;
    if (perMinute === null) continue;
    const left = remaining(standings[at]?.[rate.debt] ?? 0, perMinute);
    if (left >= least) continue;
    found = at;
    least = left;
  }
  return found;
}

/** As clients know them: `6ms`, `1.5s`, `6m0s`. */
export function toDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = `${(ms % 60_000) / 1000}s`;
  return minutes === 0 ? seconds : `${minutes}m${seconds}`;
}
