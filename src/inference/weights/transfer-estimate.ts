// Estimates when a download will be done: the bytes left, at the rate of its last seconds.

/** The rate is that of this time. */
const windowMs = 10_000;
/** A shorter time says little about the rate. */
const minWindowMs = 1_000;
/** Bytes per millisecond before a rate was measured: half a gigabit per second. */
const assumedRate = 62_500;
/** Maximum estimate, also for a download that stalls. */
const maxLeftMs = 3_600_000;

interface Sample {
  readonly at: number;
  readonly bytes: number;
}

export class TransferEstimate {
  /** The oldest first. There are as many as the caller looks in the time of the window. */
  readonly #samples: Sample[] = [];

  /** Milliseconds until all bytes have come. `at` is the time of this look, on any clock that only goes forward. */
  leftMs(at: number, bytes: number, total: number): number {
    const samples = this.#samples;
    samples.push({ at, bytes });
    while ((samples[1]?.at ?? at) <= at - windowMs) samples.shift();
    const [first = { at, bytes }] = samples;
    const rate =
      at - first.at < minWindowMs ? assumedRate : (bytes - first.bytes) / (at - first.at);
    return Math.ceil(Math.min(maxLeftMs, Math.max(0, total - bytes) / Math.max(rate, 1e-9)));
  }
}
