// The four limits of a key or an account, and their conversion between database columns, the wire and our own
// form. Null means no limit. Money is whole nano-dollars inside, so that sums are exact, and dollars on the wire.

import type { Limits as WireLimits } from '#accounts/schema.ts';
import { toDollars } from '#accounts/usage/dollars.ts';
import type { LimitColumns } from '#db/tables/account-rows.ts';

export interface LimitSet {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly concurrentRequests: number | null;
  /** Maximum cost in a UTC calendar month. */
  readonly monthlyBudgetNano: number | null;
}

export const unlimited: LimitSet = Object.freeze({
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrentRequests: null,
  monthlyBudgetNano: null,
});

const nanoPerDollar = 1_000_000_000;

const toNano = (dollars: number) => Math.round(dollars * nanoPerDollar);

export const hasLimit = (set: LimitSet) =>
  set.requestsPerMinute !== null ||
  set.tokensPerMinute !== null ||
  set.concurrentRequests !== null ||
  set.monthlyBudgetNano !== null;

export const toLimitSet = (row: LimitColumns): LimitSet => ({
  requestsPerMinute: row.requests_per_minute,
  tokensPerMinute: row.tokens_per_minute,
  concurrentRequests: row.concurrent_requests,
  monthlyBudgetNano: row.monthly_budget_nano,
});

export const toColumns = (set: LimitSet): LimitColumns => ({
  requests_per_minute: set.requestsPerMinute,
  tokens_per_minute: set.tokensPerMinute,
  concurrent_requests: set.concurrentRequests,
  monthly_budget_nano: set.monthlyBudgetNano,
});

export const toWireLimits = (row: LimitColumns): Required<WireLimits> => ({
  requests_per_minute: row.requests_per_minute,
  tokens_per_minute: row.tokens_per_minute,
  concurrent_requests: row.concurrent_requests,
  monthly_budget: row.monthly_budget_nano === null ? null : toDollars(row.monthly_budget_nano),
});

/** Limits that the wire object leaves out keep their value. */
export function changeLimits(before: LimitSet, wire: WireLimits): LimitSet {
  const { requests_per_minute, tokens_per_minute, concurrent_requests, monthly_budget } = wire;
  const pick = (given: number | null | undefined, old: number | null) =>
    given === undefined ? old : given;
  const budget = monthly_budget == null ? monthly_budget : toNano(monthly_budget);
  return {
    requestsPerMinute: pick(requests_per_minute, before.requestsPerMinute),
    tokensPerMinute: pick(tokens_per_minute, before.tokensPerMinute),
    concurrentRequests: pick(concurrent_requests, before.concurrentRequests),
    monthlyBudgetNano: pick(budget, before.monthlyBudgetNano),
  };
}
