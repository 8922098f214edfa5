// So many a minute, as a bucket that leaks. The debt is counted in sixty-thousandths of a unit, so that
// every millisecond pays back a whole number of them and no sum is ever rounded.

export interface Bucket {
  debt: number;
  /** When the debt was right, in milliseconds. */
  at: number;
}

/** One request or one token. */
export const unit = 60_000;

export const newBucket = (now: number): Bucket => ({ debt: 0, at: now });

/** Pays back what time has earned since. A clock that steps back earns nothing, and goes on from there. */
export function leak(bucket: Bucket, perMinute: number, now: number): void {
  const passedMs = Math.max(0, now - bucket.at);
  bucket.debt = Math.max(0, bucket.debt - passedMs * perMinute);
  bucket.at = now;
}

/** Milliseconds until `wanted` fit; 0 when they do now. */
export const waitFor = (debt: number, wanted: number, perMinute: number) =>
  Math.max(0, Math.ceil((debt + (wanted - perMinute) * unit) / perMinute));

export const remaining = (debt: number, perMinute: number) =>
  Math.max(0, Math.floor(perMinute - debt / unit));

/** Milliseconds until nothing is owed. */
export const resetAfter = (debt: number, perMinute: number) => Math.ceil(debt / perMinute);
