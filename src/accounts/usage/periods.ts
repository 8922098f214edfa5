// The hours and months that usage is summed by.

export const hourMs = 3_600_000;

/** The UTC month of a time, e.g. `2026-11`. */
export const toMonth = (at: number): string => new Date(at).toISOString().slice(0, 7);

/** The end of the UTC month that contains the time. */
export function toMonthEnd(at: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}
