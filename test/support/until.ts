// Waits for what will become true, and fails by name when it doesn't in time.

import { setTimeout as sleep } from 'node:timers/promises';

export async function until<Value>(
  what: string,
  check: () => Promise<Value> | Value,
  limitMs = 30_000,
): Promise<NonNullable<Value>> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`not in ${limitMs} ms: ${what}`);
    await sleep(10);
  }
}
