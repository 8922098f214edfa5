// Kills the process of the cloud forty times: see crash-storm.ts.

import { test } from 'node:test';
import type { CrashOptions } from '#test/support/cloud/crash-child.ts';
import { seed, storm } from '#test/support/cloud/crash-storm.ts';

const kills = Number(process.env.MILLRACE_TEST_KILLS ?? 40);
/** Real machines as well if this process may create them. */
const drivers: CrashOptions['driver'][] =
  process.platform === 'linux' && process.getuid?.() === 0 ? ['scripted', 'sandbox'] : ['scripted'];

for (const driver of drivers) {
  test(`${kills} kills lose no instance (seed ${seed}, driver ${driver})`, (context) =>
    storm(context, { driver, kills, maxIdleMs: 1_000 }));
}
