// Counts, money and durations as text.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export const toCount = (value: number) => whole.format(value);

/** Short enough for the axis of a chart, e.g. `1.2M`. */
export const toShortCount = (value: number) => short.format(value);

/** "1 token", "2,000 tokens". */
export const toCounted = (value: number, noun: string) =>
  `${toCount(value)} ${noun}${value === 1 ? '' : 's'}`;

/** Two decimal places; more below a dollar, so that a small amount is not shown as zero. */
export function toMoney(dollars: number): string {
  const size = Math.abs(dollars);
  const places = size === 0 || size >= 1 ? 2 : Math.min(9, 1 - Math.floor(Math.log10(size)));
  const text = size.toLocaleString('en', {
    minimumFractionDigits: 2,
    maximumFractionDigits: Math.max(2, places),
  });
  return `${dollars < 0 ? '−' : ''}$${text}`;
}

export function toDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export const toHours = (hours: number) =>
  hours.toLocaleString('en', { maximumFractionDigits: hours < 1 ? 4 : 2 });

/** Requests per second, with enough decimal places for low rates; zero has none. */
export const toRate = (perSecond: number) =>
  perSecond === 0 ? '0' : perSecond < 0.1 ? perSecond.toFixed(2) : perSecond.toFixed(1);
