// Points in time as options name them, and as tables print them.

import { InvalidArgumentError } from 'commander';

/** A date, or a number of days ago. */
export function parseTime(text: string): string {
  const days = /^(\d{1,4})d$/.exec(text)?.[1];
  const at = days === undefined ? Date.parse(text) : Date.now() - Number(days) * 86_400_000;
  if (Number.isNaN(at))
    throw new InvalidArgumentError('Give a date such as 2026-11-01, or days ago such as 30d.');
  return new Date(at).toISOString();
}

/** Seconds since 1970, to the minute in UTC. */
export const fromSeconds = (seconds: number) => toMinute(new Date(seconds * 1000).toISOString());

/** An ISO 8601 time in UTC to the minute, such as `2026-11-01 09:30`. */
export const toMinute = (time: string) => time.slice(0, 16).replace('T', ' ');
