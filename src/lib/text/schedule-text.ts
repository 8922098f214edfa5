// A time of a schedule as people write it: `mon-fri 08:00-18:00 2 Europe/Berlin`. The number is that of the replicas.

export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
export type Weekday = (typeof weekdays)[number];

export interface TimeWindow {
  days: Weekday[];
  /** Local time, as `08:00`. */
  from: string;
  /** If it is not after `from`, it is on the next day. */
  to: string;
  time_zone: string;
  min: number;
}

const line =
  /^(?<days>[a-z,-]+) +(?<from>\d\d:\d\d)-(?<to>\d\d:\d\d) +(?<min>\d{1,2})(?: +(?<zone>\S+))?$/;

/** The time zone is UTC if there is none. Undefined if the text is no such line. */
export function parseTimeWindow(text: string): TimeWindow | undefined {
  const { days, from, to, min, zone = 'UTC' } = line.exec(text.trim().toLowerCase())?.groups ?? {};
  const named = days === undefined ? undefined : parseDays(days);
  if (named === undefined || from === undefined || to === undefined) return undefined;
  // Names of time zones are not in lower case.
  const time_zone = zone === 'UTC' ? zone : (text.trim().split(/ +/).at(-1) ?? zone);
  return { days: named, from, to, time_zone, min: Number(min) };
}

export const toTimeText = ({ days, from, to, min, time_zone }: TimeWindow): string =>
  `${toDaysText(days)} ${from}-${to} ${min} ${time_zone}`;

/** `daily`, or names and ranges between commas. */
function parseDays(text: string): Weekday[] | undefined {
  if (text === 'daily') return [...weekdays];
  const days: Weekday[] = [];
  for (const part of text.split(',')) {
    const [first = '', last = first, ...more] = part.split('-');
    const [from, to] = [first, last].map((day) => weekdays.indexOf(day as Weekday));
    if (from === undefined || to === undefined || from < 0 || to < from || more.length > 0)
      return undefined;
    days.push(...weekdays.slice(from, to + 1));
  }
  return [...new Set(days)];
}

function toDaysText(days: readonly Weekday[]): string {
  const sorted = weekdays.filter((day) => days.includes(day));
  if (sorted.length === weekdays.length) return 'daily';
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined) return '';
  const isRange = weekdays.indexOf(last) - weekdays.indexOf(first) === sorted.length - 1;
  return isRange && sorted.length > 2 ? `${first}-${last}` : sorted.join(',');
}
