// One call for all callers that ask while it runs and shortly afterwards, so that many viewers cost as much as one.

/** A failure is shared as well: what does not answer must not be asked at once again. */
export function shareRecent<Result>(
  maxAgeMs: number,
  read: () => Promise<Result>,
): () => Promise<Result> {
  let last = { result: null as Promise<Result> | null, validUntil: 0 };
  return () => {
    if (last.result !== null && performance.now() < last.validUntil) return last.result;
    const result = read();
    const current = { result, validUntil: Number.POSITIVE_INFINITY };
    const settled = () => {
      current.validUntil = performance.now() + maxAgeMs;
    };
    result.then(settled, settled);
    last = current;
    return result;
  };
}
