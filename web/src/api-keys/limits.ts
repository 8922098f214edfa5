// Limits of keys and of the account, and what has been used this month.

import { useQuery } from '@tanstack/react-query';
import type { Limits, Spend } from '#accounts/schema.ts';
import { toCount, toMoney } from '#lib/text/format.ts';
import { get } from '../api.ts';

export interface Allowance {
  limits: Limits;
  spend: Spend;
}

export const accountLimitsKey = ['account-limits'];
export const accountLimitsPath = '/dashboard/api/limits';

export function useAccountLimits() {
  return useQuery({ queryKey: accountLimitsKey, queryFn: () => get<Allowance>(accountLimitsPath) });
}

/** In the order of the form's fields. */
export const limitFields = [
  {
    name: 'requests_per_minute',
    label: 'Requests per minute',
    unit: 'requests/min',
    one: 'request/min',
  },
  { name: 'tokens_per_minute', label: 'Tokens per minute', unit: 'tokens/min', one: 'token/min' },
  {
    name: 'concurrent_requests',
    label: 'Concurrent requests',
    unit: 'concurrent',
    one: 'concurrent',
  },
  { name: 'monthly_budget', label: 'Monthly budget', unit: 'per month', one: 'per month' },
] as const satisfies { name: keyof Limits; label: string; unit: string; one: string }[];

export function toLimitTexts(limits: Limits): string[] {
  return limitFields.flatMap(({ name, unit, one }) => {
    const value = limits[name];
    if (value == null) return [];
    return `${name === 'monthly_budget' ? toMoney(value) : toCount(value)} ${value === 1 ? one : unit}`;
  });
}

/** An empty field means no limit. */
export const parseLimits = (form: FormData): Limits =>
  Object.fromEntries(
    limitFields.map(({ name }) => {
      const text = String(form.get(name) ?? '').trim();
      return [name, text === '' ? null : Number(text)];
    }),
  );

/** For a new key: an empty field is omitted, so the server applies its default limit if it has one. */
export const parseNewLimits = (form: FormData): Limits =>
  Object.fromEntries(Object.entries(parseLimits(form)).filter(([, value]) => value !== null));
