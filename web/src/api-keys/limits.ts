// What keys and the account may use, and what they have used this month.

import { useQuery } from '@tanstack/react-query';
import type { ApiKey } from '../../../src/accounts/schema.ts';
import { get } from '../api.ts';
import { toCount, toMoney } from '../parts/numbers.ts';

/** Null: no limit. */
export interface Limits {
  requests_per_minute: number | null;
  tokens_per_minute: number | null;
  concurrent_requests: number | null;
  /** US dollars in a calendar month (UTC). */
  monthly_budget: number | null;
}

export interface Spend {
  /** e.g. `2026-11`. */
  month: string;
  cost: number;
  tokens: number;
  requests: number;
}

export interface Allowance {
  limits: Limits;
  spend: Spend;
}

export type KeyWithLimits = ApiKey & Allowance;

export const accountLimitsKey = ['account-limits'];
const path = '/dashboard/api/limits';

export function useAccountLimits() {
  return useQuery({ queryKey: accountLimitsKey, queryFn: () => get<Allowance>(path) });
}

/** In the order in which people are asked for them. */
export const limitFields = [
  { name: 'requests_per_minute', label: 'Requests a minute', unit: 'requests/min' },
  { name: 'tokens_per_minute', label: 'Tokens a minute', unit: 'tokens/min' },
  { name: 'concurrent_requests', label: 'Requests at once', unit: 'at once' },
  { name: 'monthly_budget', label: 'Dollars a month', unit: 'a month' },
] as const satisfies { name: keyof Limits; label: string; unit: string }[];

export function toLimitWords(limits: Limits): string[] {
  return limitFields.flatMap(({ name, unit }) => {
    const value = limits[name];
    if (value === null) return [];
    return `${name === 'monthly_budget' ? toMoney(value) : toCount(value)} ${unit}`;
  });
}

/** An empty field is no limit. */
export function parseLimits(form: FormData): Limits {
  const read = (name: keyof Limits) => {
    const text = String(form.get(name) ?? '').trim();
    return text === '' ? null : Number(text);
  };
  return {
    requests_per_minute: read('requests_per_minute'),
    tokens_per_minute: read('tokens_per_minute'),
    concurrent_requests: read('concurrent_requests'),
    monthly_budget: read('monthly_budget'),
  };
}
