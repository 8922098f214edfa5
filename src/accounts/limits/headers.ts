// The x-ratelimit-* headers: what is enforced, of the key or the account, whichever has less left. Both say
// how it is after this request.

import { remaining, resetAfter } from './bucket.ts';
import type { LimitScope, Standing } from './store.ts';

/** Null when neither rate is limited. Made for every request, so nothing is made on the way. */
export function toHeaders(
  scopes: readonly LimitScope[],
  standings: readonly Standing[],
): Record<string, string> | null {
  const headers: Record<string, string> = {};
  const requests = tightest(scopes, standings, 'requestsPerMinute', 'requestDebt');
  const requestsLimit = scopes[requests]?.limits.requestsPerMinute ?? null;
  if (requestsLimit !== null) {
    const debt = standings[requests]?.requestDebt ?? 0;
    headers['x-ratelimit-limit-requests'] = String(requestsLimit);
    headers['x-ratelimit-remaining-requests'] = String(remaining(debt, requestsLimit));
    headers['x-ratelimit-reset-requests'] = toDuration(resetAfter(debt, requestsLimit));
  }
  const tokens = tightest(scopes, standings, 'tokensPerMinute', 'tokenDebt');
  const tokensLimit = scopes[tokens]?.limits.tokensPerMinute ?? null;
  if (tokensLimit !== null) {
    const debt = standings[tokens]?.tokenDebt ?? 0;
    headers['x-ratelimit-limit-tokens'] = String(tokensLimit);
    headers['x-ratelimit-remaining-tokens'] = String(remaining(debt, tokensLimit));
    headers['x-ratelimit-reset-tokens'] = toDuration(resetAfter(debt, tokensLimit));
  }
  return requestsLimit === null && tokensLimit === null ? null : headers;
}

/** Which of the scopes has the least left of a rate; -1 where it is not limited. */
function tightest(
  scopes: readonly LimitScope[],
  standings: readonly Standing[],
  rate: 'requestsPerMinute' | 'tokensPerMinute',
  owed: 'requestDebt' | 'tokenDebt',
): number {
  let found = -1;
  let least = Number.POSITIVE_INFINITY;
  for (let at = 0; at < scopes.length; at++) {
    const perMinute = scopes[at]?.limits[rate] ?? null;
    if (perMinute === null) continue;
    const left = remaining(standings[at]?.[owed] ?? 0, perMinute);
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
