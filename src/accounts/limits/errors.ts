// Why a request was not let in, in words that name the limit and whose it is. The inference API puts it
// into its own form.

import { toDollars } from '#accounts/usage/dollars.ts';
import { remaining, waitFor } from './bucket.ts';
import type { Amount, LimitKind, LimitScope, Standing } from './store.ts';

export class LimitReached extends Error {
  readonly limit: LimitKind;
  /** Whose. */
  readonly scope: LimitScope['kind'];
  /** Null when trying again can't help. */
  readonly retryAfterMs: number | null;
  /** x-ratelimit-*. */
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

/** When a running request ends is not known; this is a fair time to ask again. */
const runningRetryMs = 1000;

/** Null when it fits an empty bucket. */
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
      'never fits. Shorten the prompt, lower the most tokens asked for, or have the limit raised.',
    null,
    headers,
  );
}

export function limitReached(
  limit: LimitKind,
  scope: LimitScope,
  standing: Standing,
  ask: Amount,
  headers: Record<string, string>,
): LimitReached {
  const [message, retryAfterMs] = tell(limit, scope, standing, ask);
  return new LimitReached({ limit, scope: scope.kind }, message, retryAfterMs, headers);
}

function tell(
  limit: LimitKind,
  { kind, limits }: LimitScope,
  { requestDebt, tokenDebt, spentNano, heldNano }: Standing,
  ask: Amount,
): [message: string, retryAfterMs: number | null] {
  const { requestsPerMinute, tokensPerMinute, concurrentRequests, monthlyBudgetNano } = limits;
  const later = 'Try again after the time in retry-after.';
  switch (limit) {
    case 'requests': {
      const perMinute = requestsPerMinute ?? 1;
      return [
        `This ${kind} is over its limit of ${perMinute} requests a minute. ${later}`,
        waitFor(requestDebt, 1, perMinute),
      ];
    }
    case 'tokens': {
      const perMinute = tokensPerMinute ?? 1;
      return [
        `This ${kind} is over its limit of ${perMinute} tokens a minute: ${remaining(tokenDebt, perMinute)} ` +
          `are left, and this request could use ${ask.tokens}. ${later}`,
        waitFor(tokenDebt, ask.tokens, perMinute),
      ];
    }
    case 'concurrent':
      return [
        `This ${kind} has ${concurrentRequests} requests running, which is its limit of concurrent requests. ${later}`,
        runningRetryMs,
      ];
    case 'budget':
      return tellBudget(kind, monthlyBudgetNano ?? 0, { spentNano, heldNano }, ask.costNano);
  }
}

function tellBudget(
  kind: LimitScope['kind'],
  budgetNano: number,
  { spentNano, heldNano }: Pick<Standing, 'spentNano' | 'heldNano'>,
  costNano: number,
): [message: string, retryAfterMs: number | null] {
  const budget = `This ${kind}'s budget of ${toMoney(budgetNano)} a month`;
  if (spentNano >= budgetNano) {
    return [`${budget} is spent. A new month begins on the 1st (UTC), or have it raised.`, null];
  }
  const left = budgetNano - spentNano;
  if (costNano > left) {
    return [
      `${budget} has ${toMoney(left)} left, and this request could cost ${toMoney(costNano)}. ` +
        'Ask for fewer tokens, or have the budget raised.',
      null,
    ];
  }
  return [
    `${budget} has ${toMoney(left)} left, of which running requests may need ${toMoney(heldNano)}; ` +
      `this one could cost ${toMoney(costNano)}. Try again when they have ended.`,
    runningRetryMs,
  ];
}

/** As exact as it is counted, without noughts at the end. */
const toMoney = (nano: number) =>
  `$${toDollars(nano)
    .toFixed(9)
    .replace(/(\.\d\d\d*?)0+$/, '$1')}`;
