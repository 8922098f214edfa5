// The cloud's process is killed forty times: see crash-storm.ts.

import { test } from 'node:test';
import type { CrashOptions } from '#test/support/cloud/crash-child.ts';
import { seed, storm } from '#test/support/cloud/crash-storm.ts';

const kills = Number(process.env.MILLRACE_TEST_KILLS ?? 40);
/** The real machines too, where this process may make them. */
const drivers: CrashOptions['driver'][] =
  process.platform === 'linux' && process.getuid?.() === 0 ? ['scripted', 'sandbox'] : ['scripted'];

for (const driver of drivers) {
  test(`${kills} kills lose nothing (seed ${seed}, driver ${driver})`, (context) =>
    storm(context, { driver, kills, patienceMs: 300 }));
}
