// What keys and the account may use, and what they have used this month.

import { useQuery } from '@tanstack/react-query';
import type { Limits, Spend } from '#accounts/schema.ts';
import { get } from '../api.ts';
import { toCount, toMoney } from '../format/numbers.ts';

export interface Allowance {
  limits: Limits;
  spend: Spend;
}

export const accountLimitsKey = ['account-limits'];
const path = '/dashboard/api/limits';

export function useAccountLimits() {
  return useQuery({ queryKey: accountLimitsKey, queryFn: () => get<Allowance>(path) });
}

/** In the order in which people are asked for them. */
export const limitFields = [
  {
    name: 'requests_per_minute',
    label: 'Requests a minute',
    unit: 'requests/min',
    one: 'request/min',
  },
  { name: 'tokens_per_minute', label: 'Tokens a minute', unit: 'tokens/min', one: 'token/min' },
  { name: 'concurrent_requests', label: 'Requests at once', unit: 'at once', one: 'at once' },
  { name: 'monthly_budget', label: 'Dollars a month', unit: 'a month', one: 'a month' },
] as const satisfies { name: keyof Limits; label: string; unit: string; one: string }[];

export function toLimitWords(limits: Limits): string[] {
  return limitFields.flatMap(({ name, unit, one }) => {
    const value = limits[name];
    if (value == null) return [];
    return `${name === 'monthly_budget' ? toMoney(value) : toCount(value)} ${value === 1 ? one : unit}`;
  });
}

/** An empty field is no limit. */
export const parseLimits = (form: FormData): Limits =>
  Object.fromEntries(
    limitFields.map(({ name }) => {
      const text = String(form.get(name) ?? '').trim();
      return [name, text === '' ? null : Number(text)];
    }),
  );

/** For a new key: a field that is left empty is left to the server, which may have its own usual limits. */
export const parseNewLimits = (form: FormData): Limits =>
  Object.fromEntries(Object.entries(parseLimits(form)).filter(([, value]) => value !== null));
