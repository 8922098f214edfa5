// Parses a time in a query.

import { invalidBody } from '#lib/errors.ts';

/** The schema accepts a leap second, which JavaScript parses as NaN. `name` is the parameter. */
export function parseTime(name: string, text: string): number {
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw invalidBody(`${name} is not a time.`, name);
  return at;
}

export const parseOptionalTime = (name: string, text: string | undefined) =>
  text === undefined ? undefined : parseTime(name, text);
