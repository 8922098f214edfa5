// Counts, money, sizes and durations as text, the same in the dashboard and the CLI.

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
  const seconds = Math.round(ms / 1000);
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return toParts([minutes, 'min'], [seconds % 60, 's']);
  return toParts([Math.floor(minutes / 60), 'h'], [minutes % 60, 'min']);
}

/** Without a second part that is zero. */
const toParts = (...parts: [number, string][]) =>
  parts
    .filter(([value], index) => index === 0 || value > 0)
    .map((part) => part.join(' '))
    .join(' ');

export const toHours = (hours: number) =>
  hours.toLocaleString('en', { maximumFractionDigits: hours < 1 ? 4 : 2 });

/** Requests per second, with enough decimal places for low rates; zero has none. */
export const toRate = (perSecond: number) =>
  perSecond === 0 ? '0' : perSecond < 0.1 ? perSecond.toFixed(2) : perSecond.toFixed(1);

/** The share of a whole, e.g. `1.5%`; more places below one percent, so that a small share is not shown as zero. */
export function toPercent(part: number, whole: number): string {
  const percent = whole === 0 ? 0 : (part / whole) * 100;
  if (percent > 0 && percent < 0.01) return '<0.01%';
  return `${percent.toLocaleString('en', { maximumSignificantDigits: percent < 1 ? 1 : 3 })}%`;
}

/** The price of a machine, e.g. `$1.29/hour`. */
export const toHourlyPrice = (centsPerHour: number) => `${toMoney(centsPerHour / 100)}/hour`;

/** The price of a model in US dollars per million tokens. */
export const toTokenPrice = (dollars: number) => `${toMoney(dollars)}/M tokens`;

export const toPricePair = ({ input, output }: { input: number; output: number }) =>
  `${toMoney(input)} input, ${toMoney(output)} output per million tokens`;

/** Powers of a thousand, as hubs and disks state sizes. */
export const toSize = (bytes: number) => toScaled(bytes, 1000, ['B', 'kB', 'MB', 'GB', 'TB']);

/** Powers of 1,024, as the memory and disk of machines are stated. */
export const toBinarySize = (bytes: number) =>
  toScaled(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);

/** "1.50 GiB of 8.00 GiB", or "1.50 of 8.00 GiB" if both have the same unit. */
export function toBinarySizeOf(part: number, whole: number): string {
  const [used, total] = [toBinarySize(part), toBinarySize(whole)];
  const [value, unit] = used.split(' ');
  return `${total.endsWith(` ${unit}`) ? value : used} of ${total}`;
}

function toScaled(bytes: number, base: number, units: readonly string[]): string {
  let value = bytes;
  let unit = 0;
  for (; value >= base && unit < units.length - 1; unit++) value /= base;
  return `${unit === 0 ? Math.round(value) : value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}
