// The one rate algorithm: a leaky bucket. What is taken adds debt, time pays debt back at a fixed rate, and
// what would raise the debt above the bucket's capacity must wait. The caller chooses the unit of debt so that
// a millisecond pays back a whole number of units and no sum is rounded. `leakScript` is the same in Lua.

export interface LeakyBucket {
  debt: number;
  /** The time up to which debt was paid back, in milliseconds. */
  at: number;
}

export const newBucket = (now: number): LeakyBucket => ({ debt: 0, at: now });

/** Pays debt back up to now. A clock that was set back pays nothing, and time counts from there. */
export function leak(bucket: LeakyBucket, paidPerMs: number, now: number): void {
  const passedMs = Math.max(0, now - bucket.at);
  bucket.debt = Math.max(0, bucket.debt - passedMs * paidPerMs);
  bucket.at = now;
}

/** Milliseconds until debt that is `excess` above what fits is paid back; 0 if it fits now. */
export const waitFor = (excess: number, paidPerMs: number) =>
  Math.max(0, Math.ceil(excess / paidPerMs));

/** The debt of one request or token at a rate per minute, so that a millisecond pays back exactly `perMinute`. */
export const unit = 60_000;

/** Milliseconds until `wanted` of them fit; 0 if they fit now. */
export const waitForRate = (debt: number, wanted: number, perMinute: number) =>
  waitFor(debt + (wanted - perMinute) * unit, perMinute);

/** How many of them fit now. */
export const remaining = (debt: number, perMinute: number) =>
  Math.max(0, Math.floor(perMinute - debt / unit));

/** Milliseconds until the bucket is empty. */
export const resetAfter = (debt: number, perMinute: number) => waitFor(debt, perMinute);

/** Lua. Expects the time in `now`, and returns the new debt and its time. */
export const leakScript = `
local function leak(debt, at, paidPerMs)
  return math.max(0, debt - math.max(0, now - at) * paidPerMs), now
end
`;
