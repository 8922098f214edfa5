// Times with a higher minimum of replicas, so that they are warm before people arrive. Pure.

import { type TimeWindow, weekdays } from '#lib/text/schedule-text.ts';

/** Returns the highest minimum of the times that a moment is in; 0 if it is in none. */
export type Schedule = (at: number) => number;

/** Minutes since Monday, local time. */
type MinutesOfWeek = (at: number) => number;

const minutesPerDay = 24 * 60;
const minutesPerWeek = 7 * minutesPerDay;

/** Throws a RangeError if a time zone is unknown. */
export function createSchedule(windows: readonly TimeWindow[]): Schedule {
  const zones = new Map(
    windows.map(({ time_zone }) => [time_zone, toMinutesOfWeek(time_zone)] as const),
  );
  const times = windows.map((window) => ({
    ...window,
    minutesOfWeek: zones.get(window.time_zone),
  }));
  return (at) =>
    times.reduce(
      (min, { minutesOfWeek, ...window }) =>
        minutesOfWeek !== undefined && isWithin(window, minutesOfWeek(at))
          ? Math.max(min, window.min)
          : min,
      0,
    );
}

function isWithin({ days, from, to }: TimeWindow, minutes: number): boolean {
  const start = toMinutes(from);
  // A time that ends when it starts, or earlier, ends on the next day.
  const length = toMinutes(to) - start + (toMinutes(to) <= start ? minutesPerDay : 0);
  return days.some((day) => {
    const since = minutes - weekdays.indexOf(day) * minutesPerDay - start;
    return (since + minutesPerWeek) % minutesPerWeek < length;
  });
}

function toMinutes(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return hours * 60 + minutes;
}

/** Knows daylight saving time. */
function toMinutesOfWeek(timeZone: string): MinutesOfWeek {
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone, hourCycle: 'h23', weekday: 'short', hour: '2-digit', minute: '2-digit' },
  });
  return (at) => {
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]));
    const day = weekdays.findIndex((name) => name === parts.get('weekday')?.toLowerCase());
    return day * minutesPerDay + toMinutes(`${parts.get('hour')}:${parts.get('minute')}`);
  };
}
