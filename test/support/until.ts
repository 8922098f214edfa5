// Waits until a condition holds. The timeout is generous, because it only bounds the wait of a test that fails.

import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves to the first truthy value that `check` returns. `what` completes "waiting until …". */
export async function until<Value>(
  what: string,
  check: () => Promise<Value> | Value,
  timeoutMs = 60_000,
): Promise<NonNullable<Value>> {
  const startedAt = Date.now();
  for (;;) {
    const value = await check();
    if (value) return value;
    const waitedMs = Date.now() - startedAt;
    if (waitedMs > timeoutMs)
      throw new Error(`timed out after ${timeoutMs} ms waiting until ${what}`);
    // A long wait is checked less often, because each check takes time from what the test waits for.
    await sleep(Math.min(10 + waitedMs / 10, 50));
  }
}
