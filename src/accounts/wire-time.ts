// Times of requests and responses: ISO 8601 there, milliseconds since the epoch here.

import { invalidBody } from '#lib/errors.ts';

/** The schema accepts a leap second, which JavaScript parses as NaN. `name` is the parameter. */
export function parseTime(name: string, text: string): number {
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw invalidBody(`${name} is not a time.`, name);
  return at;
}

export const parseOptionalTime = (name: string, text: string | undefined) =>
  text === undefined ? undefined : parseTime(name, text);

export const toTime = (ms: number): string => new Date(ms).toISOString();
