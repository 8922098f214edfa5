// Rates per minute as leaky buckets. Debt is counted in sixty-thousandths of a request or token, so that a
// millisecond pays back exactly `perMinute` of them.

import { waitFor } from '#lib/limits/leaky-bucket.ts';

/** The debt of one request or one token. */
export const unit = 60_000;

/** Milliseconds until `wanted` requests or tokens fit; 0 if they fit now. */
export const waitForRate = (debt: number, wanted: number, perMinute: number) =>
  waitFor(debt + (wanted - perMinute) * unit, perMinute);

/** Whole requests or tokens that fit now. */
export const remaining = (debt: number, perMinute: number) =>
  Math.max(0, Math.floor(perMinute - debt / unit));

/** Milliseconds until the bucket is empty. */
export const resetAfter = (debt: number, perMinute: number) => waitFor(debt, perMinute);
