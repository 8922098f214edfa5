// Kills the process of the cloud again and again: see crash-storm.ts.

import { test } from 'node:test';
import type { CrashOptions } from '#test/support/cloud/crash-child.ts';
import { seed, storm } from '#test/support/cloud/crash-storm.ts';
import { inSoak } from '#test/support/soak.ts';

/** How often each driver's process is killed. Real machines only if this process may create them. */
const kills: Partial<Record<CrashOptions['driver'], number>> = {
  scripted: Number(process.env.MILLRACE_TEST_KILLS ?? inSoak(3, 40)),
  ...(process.platform === 'linux' &&
    process.getuid?.() === 0 && {
      sandbox: Number(process.env.MILLRACE_TEST_KILLS ?? inSoak(3, 15)),
    }),
};

for (const [driver, count] of Object.entries(kills)) {
  test(`${count} kills lose no instance (seed ${seed}, driver ${driver})`, (context) =>
    storm(context, { driver: driver as CrashOptions['driver'], kills: count, maxIdleMs: 1_000 }));
}
