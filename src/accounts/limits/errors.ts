// Why a request was refused, in a sentence that names the limit and whether the key or the account has it. The
// inference API renders it in its own error format.

import { toDollars } from '#accounts/usage/dollars.ts';
import { remaining, waitForRate } from '#lib/limits/leaky-bucket.ts';
import type { Amount, LimitKind, LimitScope, ScopeState } from './store.ts';

export class LimitReached extends Error {
  readonly limit: LimitKind;
  /** Whether the limit is the key's or the account's. */
  readonly scope: LimitScope['kind'];
  /** Null if retrying can't help. */
  readonly retryAfterMs: number | null;
  /** The x-ratelimit-* headers. */
  readonly headers: Record<string, string>;

  constructor(
    { limit, scope }: { limit: LimitKind; scope: LimitScope['kind'] },
    message: string,
    retryAfterMs: number | null,
    headers: Record<string, string>,
  ) {
    super(message);
    this.name = 'LimitReached';
    this.limit = limit;
    this.scope = scope;
    this.retryAfterMs = retryAfterMs;
    this.headers = headers;
  }
}

/** Suggested when only the end of a running request helps, whose time is not known. */
const runningRetryMs = 1000;

/** Null if the request fits an empty bucket. */
export function tooLarge(
  { kind, limits }: LimitScope,
  { tokens }: Amount,
  headers: Record<string, string>,
): LimitReached | null {
  const limit = limits.tokensPerMinute;
  if (limit === null || tokens <= limit) return null;
  return new LimitReached(
    { limit: 'tokens', scope: kind },
    `Request too large: it could use ${tokens} tokens, and this ${kind} may use ${limit} a minute, so it ` +
      'never fits. Shorten the prompt, lower max_tokens, or have the limit raised.',
    null,
    headers,
  );
}

export function limitReached(
  limit: LimitKind,
  scope: LimitScope,
  state: ScopeState,
  { wanted, headers }: { wanted: Amount; headers: Record<string, string> },
): LimitReached {
  const [message, retryAfterMs] = explain(limit, scope, state, wanted);
  return new LimitReached({ limit, scope: scope.kind }, message, retryAfterMs, headers);
}

function explain(
  limit: LimitKind,
  { kind, limits }: LimitScope,
  { requestDebt, tokenDebt, spentNano, heldNano }: ScopeState,
  wanted: Amount,
): [message: string, retryAfterMs: number | null] {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetNano } = limits;
  const later = 'Try again after the time in retry-after.';
  switch (limit) {
    case 'requests': {
      const perMinute = requestsPerMinute ?? 1;
      return [
        `This ${kind} is over its limit of ${perMinute} requests a minute. ${later}`,
        waitForRate(requestDebt, 1, perMinute),
      ];
    }
    case 'tokens': {
      const perMinute = tokensPerMinute ?? 1;
      return [
        `This ${kind} is over its limit of ${perMinute} tokens a minute: ${remaining(tokenDebt, perMinute)} ` +
          `are left, and this request could use ${wanted.tokens}. ${later}`,
        waitForRate(tokenDebt, wanted.tokens, perMinute),
      ];
    }
    case 'concurrent':
      return [
        `This ${kind} has ${concurrentRequests} requests running, which is its limit of concurrent requests. ${later}`,
        runningRetryMs,
      ];
    case 'budget':
      return explainBudget(kind, monthlyBudgetNano ?? 0, { spentNano, heldNano }, wanted.costNano);
  }
}

function explainBudget(
  kind: LimitScope['kind'],
  budgetNano: number,
  { spentNano, heldNano }: Pick<ScopeState, 'spentNano' | 'heldNano'>,
  costNano: number,
): [message: string, retryAfterMs: number | null] {
  const budget = `This ${kind}'s budget of ${toMoney(budgetNano)} a month`;
  if (spentNano >= budgetNano) {
    return [`${budget} is spent. A new month begins on the 1st (UTC), or have it raised.`, null];
  }
  const leftNano = budgetNano - spentNano;
  if (costNano > leftNano) {
    return [
      `${budget} has ${toMoney(leftNano)} left, and this request could cost ${toMoney(costNano)}. ` +
        'Ask for fewer tokens, or have the budget raised.',
      null,
    ];
  }
  return [
    `${budget} has ${toMoney(leftNano)} left, of which running requests may need ${toMoney(heldNano)}; ` +
      `this one could cost ${toMoney(costNano)}. Try again when they have ended.`,
    runningRetryMs,
  ];
}

/** All digits that are counted, without trailing zeros beyond the cents. */
const toMoney = (nano: number) =>
  `$${toDollars(nano)
    .toFixed(9)
    .replace(/(\.\d\d\d*?)0+$/, '$1')}`;
