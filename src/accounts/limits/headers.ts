// The x-ratelimit-* headers: what is enforced, of the key or the account, whichever has less left. Both say
// how it is after this request.

import { remaining, resetAfter } from './bucket.ts';
import type { LimitScope, Standing } from './store.ts';

/** Null when neither rate is limited. */
export function toHeaders(
  scopes: readonly LimitScope[],
  standings: readonly Standing[],
): Record<string, string> | null {
  const requests = findTightest(scopes, (scope, index) => [
    scope.limits.requestsPerMinute,
    standings[index]?.requestDebt ?? 0,
  ]);
  const tokens = findTightest(scopes, (scope, index) => [
    scope.limits.tokensPerMinute,
    standings[index]?.tokenDebt ?? 0,
  ]);
  if (requests === null && tokens === null) return null;
  return { ...render('requests', requests), ...render('tokens', tokens) };
}

interface Rate {
  perMinute: number;
  debt: number;
}

function findTightest(
  scopes: readonly LimitScope[],
  read: (scope: LimitScope, index: number) => readonly [number | null, number],
): Rate | null {
  let tightest: Rate | null = null;
  scopes.forEach((scope, index) => {
    const [perMinute, debt] = read(scope, index);
    if (perMinute === null) return;
    const left = remaining(debt, perMinute);
    if (tightest === null || left < remaining(tightest.debt, tightest.perMinute)) {
      tightest = { perMinute, debt };
    }
  });
  return tightest;
}

function render(name: 'requests' | 'tokens', rate: Rate | null): Record<string, string> {
  if (rate === null) return {};
  const { perMinute, debt } = rate;
  return {
    [`x-ratelimit-limit-${name}`]: String(perMinute),
    [`x-ratelimit-remaining-${name}`]: String(remaining(debt, perMinute)),
    [`x-ratelimit-reset-${name}`]: toDuration(resetAfter(debt, perMinute)),
  };
}

/** As clients know them: `6ms`, `1.5s`, `6m0s`. */
export function toDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = `${(ms % 60_000) / 1000}s`;
  return minutes === 0 ? seconds : `${minutes}m${seconds}`;
}
