// A time relative to now, e.g. "5 minutes ago", with the exact time as a tooltip.

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const exact = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' });

export function toRelative(at: number, now: number): string {
  const seconds = (at - now) / 1000;
  const [unit, length] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1];
  if (unit === 'second') return seconds > 0 ? 'in a moment' : 'just now';
  return relative.format(Math.round(seconds / length), unit);
}

export const RelativeTime = ({ at }: { at: string }) => {
  const date = new Date(at);
  return (
    <time dateTime={at} title={exact.format(date)}>
      {toRelative(date.getTime(), Date.now())}
    </time>
  );
};
