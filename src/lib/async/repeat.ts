// A call at each interval of a clock. It does not wait for the work that the call before has started, as `setInterval`.

import type { Clock } from '#lib/clock.ts';

/** Returns a function that ends the calls. They don't keep the process alive. `run` must not throw. */
export function repeat(clock: Clock, ms: number, run: () => void): () => void {
  const ended = new AbortController();
  const loop = async () => {
    for (;;) {
      await clock.sleep(ms, { signal: ended.signal, ref: false });
      run();
    }
  };
  loop().catch(() => {});
  return () => ended.abort();
}
