// Amounts as people read them.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export const toCount = (value: number) => whole.format(value);

/** For the axis of a plot, where there is little room, e.g. `1.2M`. */
export const toShortCount = (value: number) => short.format(value);

/** "1 token", "2,000 tokens". */
export const toCounted = (value: number, noun: string) =>
  `${toCount(value)} ${noun}${value === 1 ? '' : 's'}`;

/** Cents, and for less than a dollar as many places as it takes to tell it from nothing. */
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

/** Requests a second: few are common, and none is worth saying plainly. */
export const toRate = (perSecond: number) =>
  perSecond === 0 ? '0' : perSecond < 0.1 ? perSecond.toFixed(2) : perSecond.toFixed(1);
