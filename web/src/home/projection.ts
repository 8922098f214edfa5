// The cost of a month that is not over.

const dayMs = 86_400_000;

/** What a month will have cost if each of its remaining days costs the same. Rounded to cents. */
export function toProjection(soFar: number, perDay: number, now: number): number {
  const date = new Date(now);
  const end = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  return Math.round((soFar + (perDay * (end - now)) / dayMs) * 100) / 100;
}
