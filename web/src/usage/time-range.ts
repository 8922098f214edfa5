// The time range of the usage page, in whole hours or days. Everything is in UTC, because the server adds up by
// UTC hours and days.

import type { Step } from '#accounts/usage/schema.ts';

export interface TimeRange {
  /** Milliseconds since the epoch. Both ends are the start of an interval. */
  from: number;
  to: number;
  step: Step;
}

const hour = 3_600_000;
const day = 24 * hour;
export const stepMs: Record<Step, number> = { hour, day };

/** The longest range that the server returns for each interval. */
export const maxDays: Record<Step, number> = { hour: 40, day: 400 };

export const presets = [
  { value: 'month', label: 'This month', days: null, step: 'day' },
  { value: '24h', label: '24 hours', days: 1, step: 'hour' },
  { value: '7d', label: '7 days', days: 7, step: 'day' },
  { value: '30d', label: '30 days', days: 30, step: 'day' },
] as const satisfies {
  value: string;
  label: string;
  /** Null: since the first of the month. */
  days: number | null;
  step: Step;
}[];
export const custom = { value: 'custom', label: 'Custom…' };
/** The month, so that the page shows the same totals as the home page. */
const defaultPreset = presets[0];
export const defaultRange = defaultPreset.value;

export interface RangeChoice {
  range: string | null;
  step: string | null;
  /** The first and the last day of a custom range. */
  from: string | null;
  to: string | null;
}

export function toRange(choice: RangeChoice, now: number): TimeRange {
  const wanted = choice.step === 'hour' || choice.step === 'day' ? choice.step : null;
  const first = toDay(choice.from);
  const last = toDay(choice.to);
  if (choice.range === custom.value && first !== null && last !== null && first <= last) {
    const days = (last - first) / day + 1;
    const step = wanted === 'hour' && days <= maxDays.hour ? 'hour' : 'day';
    return { from: Math.max(first, last - (maxDays.day - 1) * day), to: last + day, step };
  }
  const preset = presets.find(({ value }) => value === choice.range) ?? defaultPreset;
  const step = wanted ?? preset.step;
  const length = step === 'hour' ? hour : day;
  // The current interval is included, though it is not over.
  const to = (Math.floor(now / length) + 1) * length;
  const from = preset.days === null ? toMonthStart(now) : to - preset.days * day;
  return { from, to, step };
}

function toMonthStart(now: number): number {
  const date = new Date(now);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

/** This month until now, as the usage page shows it by default. */
export const toThisMonth = (now: number): TimeRange =>
  toRange({ range: defaultRange, step: null, from: null, to: null }, now);

/** The last 24 hours, up to the end of the current one. */
export const toLastDay = (now: number): TimeRange =>
  toRange({ range: '24h', step: null, from: null, to: null }, now);

/** Today and the six days before it, as "7 days" on the usage page. */
export const toLastWeek = (now: number): TimeRange =>
  toRange({ range: '7d', step: null, from: null, to: null }, now);

function toDay(text: string | null): number | null {
  const at = /^\d{4}-\d\d-\d\d$/.test(text ?? '') ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return Number.isNaN(at) ? null : at;
}

export const toDayText = (at: number) => new Date(at).toISOString().slice(0, 10);

/** The start of every interval, including those without usage. */
export function toStarts({ from, to, step }: TimeRange): number[] {
  const length = stepMs[step];
  return Array.from({ length: Math.round((to - from) / length) }, (_, at) => from + at * length);
}

const dayName = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' });
const hourName = new Intl.DateTimeFormat('en', {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
  timeZone: 'UTC',
});

export const toIntervalName = (start: number, step: Step) =>
  (step === 'hour' ? hourName : dayName).format(start);
