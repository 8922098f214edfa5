// One copy of weights to a host, which all machines that need it wait for.

export interface WeightCopy {
  /** Rejects if the copy failed. */
  readonly whole: Promise<void>;
  /** Percent of the bytes that the host has. */
  percent(): number;
  /** Undefined unless the copy failed. */
  error(): unknown;
}

/** `copy` calls back with the number of bytes that the host has. */
export function startWeightCopy(
  totalBytes: number,
  copy: (progress: (bytes: number) => void) => Promise<void>,
): WeightCopy {
  let copied = 0;
  let failure: unknown;
  const whole = copy((bytes) => {
    copied = bytes;
  });
  whole.catch((error) => {
    failure = error;
  });
  return {
    whole,
    percent: () => Math.min(99, Math.floor((100 * copied) / Math.max(1, totalBytes))),
    error: () => failure,
  };
}
